# A change drops replicas that neither the old nor the new target needs; one of them is in sync.
brokers: 1,2,3,4,5

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
change orders-0 to 1,5
5 joins orders-0
