# A request of more than one mebibyte is not read, and the one behind it is.
brokers: 1,2,3

create orders with 1,2
send too-large request
request orders-0 to 1,3
3 joins orders-0
