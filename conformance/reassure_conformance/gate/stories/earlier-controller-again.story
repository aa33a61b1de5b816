# A controller slept through a whole term of another one and is elected again: what it knew is old.
brokers: 1,2,3,4

create orders with 1,2
hold after 1
request orders-0 to 2,3
expire session
elect
resume
change orders-0 to 4,1
kill controller
elect
4 joins orders-0
