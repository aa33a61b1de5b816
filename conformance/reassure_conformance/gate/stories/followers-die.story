# Dead followers leave the in-sync set one by one, the last replica never does.
brokers: 1,2,3,4

create orders with 1,2,3
broker 3 dies
broker 2 dies
broker 1 dies
broker 2 returns
broker 1 returns
2 joins orders-0
