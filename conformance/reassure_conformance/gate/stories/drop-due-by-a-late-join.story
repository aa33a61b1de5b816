# Nothing is to be dropped when a change is planned; a replica of its target joins, and then there is.
brokers: 1,2,3,4,5

create orders with 1,4
broker 1 dies
hold after 5
request orders-0 to 2
request orders-0 to 3,2
2 joins orders-0
resume
