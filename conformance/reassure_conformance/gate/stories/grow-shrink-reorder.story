# The number of replicas changes both ways, then only their order does.
brokers: 1,2,3

create orders with 1
request orders-0 to 1,2,3
2 joins orders-0
3 joins orders-0
request orders-0 to 2,1
request orders-0 to 1,2
