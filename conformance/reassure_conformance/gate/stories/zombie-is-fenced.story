# A controller that slept through the loss of its session wakes up beside its successor.
brokers: 1,2,3

create orders with 1,2
hold after 1
request orders-0 to 2,3
expire session
elect
resume
3 joins orders-0
