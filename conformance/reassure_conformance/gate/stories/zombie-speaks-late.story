# A controller that slept wakes up and first of all tells a broker to stop, which leads by now.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 2,3
hold after 2
3 joins orders-0
expire session
elect
request orders-0 to 1,2
1 joins orders-0
broker 2 dies
resume
broker 2 returns
2 joins orders-0
