# A replica falls behind while the controller is about to move the leader away.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 3,4
4 joins orders-0
hold after 0
3 joins orders-0
2 leaves orders-0
resume
