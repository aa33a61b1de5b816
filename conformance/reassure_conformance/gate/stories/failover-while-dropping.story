# The controller dies in the middle of a change: the next one must neither forget nor redo the drop.
brokers: 1,2,3,4,5

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
hold after 2
change orders-0 to 1,5
kill controller
elect
5 joins orders-0
