# No replica stays, so the leader has to move before the old replicas are stopped.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 4,3
3 joins orders-0
4 joins orders-0
