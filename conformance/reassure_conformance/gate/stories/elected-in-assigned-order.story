# The in-sync set has another order than the assignment, which alone says who leads next.
brokers: 1,2,3

create orders with 1,2,3
2 leaves orders-0
2 joins orders-0
broker 1 dies
