# The leader has the highest id of all: whoever else answers for it writes in another's name.
brokers: 1,2,3

create orders with 3,1,2
2 leaves orders-0
2 joins orders-0
request orders-0 to 3,2
1 tries to join orders-0
