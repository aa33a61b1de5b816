# top and the in-sync set are both exactly min.insync.replicas when the target changes.
brokers: 1,2,3,4,5

create orders with 1,2 min isr 2
request orders-0 to 3,4
change orders-0 to 4,5
4 joins orders-0
change orders-0 to 5,3
5 joins orders-0
3 joins orders-0
