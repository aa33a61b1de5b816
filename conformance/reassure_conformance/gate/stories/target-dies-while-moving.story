# The replica that leads after the move dies before the old ones are stopped.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
hold after 1
4 joins orders-0
broker 3 dies
resume
broker 3 returns
3 joins orders-0
