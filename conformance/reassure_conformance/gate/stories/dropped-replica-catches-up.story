# A replica that is about to be dropped gets in sync after the drop was planned.
brokers: 1,2,3,4

create orders with 1
hold after 7
request orders-0 to 1,2,3
change orders-0 to 3,2,4
2 joins orders-0
resume
