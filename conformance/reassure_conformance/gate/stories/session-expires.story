# An idle controller loses its session, forgets everything and is elected again.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 2,3
expire session
3 joins orders-0
