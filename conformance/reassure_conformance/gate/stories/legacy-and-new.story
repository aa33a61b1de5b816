# A reassignment that came by one route is not changed by a request that came by the other.
brokers: 1,2,3,4

create orders with 1,2
legacy request orders-0 to 1,3
request orders-0 to 1,4
3 joins orders-0
request orders-0 to 1,4
legacy request orders-0 to 2,3
4 joins orders-0
