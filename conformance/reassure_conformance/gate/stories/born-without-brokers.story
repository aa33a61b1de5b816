# A partition is created while some or all of its brokers are down.
brokers: 1,2,3

broker 2 dies
create orders with 2,1
create events with 2
broker 2 returns
2 joins orders-0
