# A request that is refused for one partition is carried out for the others.
brokers: 1,2,3

create orders with 1,2 and 2,3
request orders-0 to none and orders-1 to 2,1
1 joins orders-1
request orders-7 to 1,2 and orders-0 to 2,3
3 joins orders-0
