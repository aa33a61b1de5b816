# A replica falls behind while the controller is about to drop it, and one more.
brokers: 1,2,3,4,5

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
hold after 2
change orders-0 to 1,5
2 leaves orders-0
resume
5 joins orders-0
