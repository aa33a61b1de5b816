# The controller dies when the assignment is written and nobody has been told.
brokers: 1,2,3

create orders with 1,2
hold after 2
request orders-0 to 3,2
kill controller
elect
3 joins orders-0
