# A follower leaves while the controller is about to take another one, which died, out of sync.
brokers: 1,2,3,4

create orders with 1,2,3
hold after 0
broker 3 dies
2 leaves orders-0
resume
2 joins orders-0
