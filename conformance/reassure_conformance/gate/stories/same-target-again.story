# A request for the target in flight changes nothing; one for what is assigned starts nothing.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 1,2
request orders-0 to 2,3
request orders-0 to 2,3
change orders-0 to 2,3
3 joins orders-0
