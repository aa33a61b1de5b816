# The controller dies half way through completion; what was stopped must not come back.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
hold after 4
4 joins orders-0
kill controller
elect
