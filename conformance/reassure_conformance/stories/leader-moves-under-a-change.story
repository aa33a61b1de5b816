# The in-sync set changes while the controller is about to move the leader, and about to let it go.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 3,2
hold after 0
3 joins orders-0
2 leaves orders-0
2 joins orders-0
resume
hold after 0
broker 2 dies
1 tries to join orders-0
resume
