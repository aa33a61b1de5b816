# The leader writes the in-sync set while the controller is about to: the controller must look again.
brokers: 1,2,3

create orders with 1,2,3
hold after 1
request orders-0 to 1,2
3 leaves orders-0
2 leaves orders-0
resume
2 joins orders-0
