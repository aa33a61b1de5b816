# Every in-sync replica dies between two looks: all of them may lead again, and nobody else.
brokers: 1,2,3,4

create orders with 1,2,3
3 leaves orders-0
hold after 0
request orders-0 to 1,2,4
broker 2 dies
broker 1 dies
resume
broker 2 returns
broker 1 returns
