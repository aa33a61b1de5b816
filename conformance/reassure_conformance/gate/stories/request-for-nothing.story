# A request that names no partition is done as soon as it is read.
brokers: 1,2,3

create orders with 1,2
send nothing-asked request
request orders-0 to 2,3
3 joins orders-0
