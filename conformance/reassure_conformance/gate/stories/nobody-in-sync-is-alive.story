# The last in-sync replica dies: no leader, the set is kept, and only that replica may lead again.
brokers: 1,2,3

create orders with 1,2
2 leaves orders-0
broker 1 dies
broker 1 returns
2 joins orders-0
