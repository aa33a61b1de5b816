# Writes are lost on their way: to take them for done would be wrong.
brokers: 1,2,3,4

create orders with 1,2
lose write after 0
request orders-0 to 2,3
lose write after 1
3 joins orders-0
request orders-0 to 2,4
lose write after 2
change orders-0 to 4,1
4 joins orders-0
