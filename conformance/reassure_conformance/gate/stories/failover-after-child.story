# The controller dies when only the record of the reassignment is written; the next one goes on.
brokers: 1,2,3

create orders with 1,2
hold after 1
request orders-0 to 2,3
kill controller
elect
3 joins orders-0
