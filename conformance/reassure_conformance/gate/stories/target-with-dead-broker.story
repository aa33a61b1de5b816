# A target that names a dead broker is accepted and waits until the broker is back.
brokers: 1,2,3

create orders with 1,2
broker 3 dies
request orders-0 to 2,3
broker 3 returns
3 joins orders-0
