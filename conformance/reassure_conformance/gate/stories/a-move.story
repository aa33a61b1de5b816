# The plainest reassignment: one replica is exchanged for another, the leader stays in the target.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 1,3
3 joins orders-0
