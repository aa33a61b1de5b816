# A controller dies between a leader's election and its message: the next one has to tell.
brokers: 1,2,3

create orders with 1,2,3
hold after 1
broker 1 dies
kill controller
elect
3 leaves orders-0
3 joins orders-0
