# The answer to a change of the target is lost: its drop is still due.
brokers: 1,2,3,4,5

create orders with 1,2
request orders-0 to 3,4
lose answer after 0
change orders-0 to 1,5
5 joins orders-0
