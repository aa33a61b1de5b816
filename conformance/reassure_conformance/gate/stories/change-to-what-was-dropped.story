# The new target names a replica that the change before it put into the assignment.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 1,3
change orders-0 to 3,4
3 joins orders-0
4 joins orders-0
