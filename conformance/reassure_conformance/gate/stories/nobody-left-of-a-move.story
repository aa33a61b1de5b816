# The target is in sync and dies with the leader: there is nobody to complete the move with.
brokers: 1,2,3

create orders with 1
request orders-0 to 3
hold after 0
3 joins orders-0
broker 3 dies
broker 1 dies
resume
broker 1 returns
broker 3 returns
