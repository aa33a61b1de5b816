# Writes are carried out and their answers never come: to try again blindly would be wrong.
brokers: 1,2,3,4

create orders with 1,2
lose answer after 0
request orders-0 to 2,3
lose answer after 0
3 joins orders-0
request orders-0 to 2,4
lose answer after 1
change orders-0 to 4,1
4 joins orders-0
