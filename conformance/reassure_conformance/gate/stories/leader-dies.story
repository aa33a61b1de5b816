# The leader dies, a follower takes over; the old leader comes back as a follower.
brokers: 1,2,3

create orders with 1,2,3
3 leaves orders-0
broker 1 dies
broker 1 returns
1 joins orders-0
3 joins orders-0
