# Every target that cannot be meant: empty, double, negative, of nobody, of no partition.
brokers: 1,2,3

create orders with 1,2
request orders-0 to none
request orders-0 to 3,3
request orders-0 to 1,-1
request orders-0 to 1,99
request nowhere-0 to 1,2
request orders-7 to 1,2
request orders-0 to 2,3
3 joins orders-0
