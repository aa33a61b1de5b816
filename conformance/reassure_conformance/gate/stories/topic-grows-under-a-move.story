# A topic gets partitions while one of it moves; neither write may undo the other.
brokers: 1,2,3,4

create orders with 1,2
hold after 1
request orders-0 to 3,2
grow orders with 2,3 and 4
resume
3 joins orders-0
request orders-1 to 4,2
grow orders with 1,4
4 joins orders-1
