# The leader is an intermediate replica when the target changes: it has to be kept all the same.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
broker 1 dies
broker 2 dies
broker 1 returns
change orders-0 to 1,2
broker 2 returns
2 joins orders-0
1 joins orders-0
