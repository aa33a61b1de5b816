# Who is not assigned, or no more, is not taken into the in-sync set however often it fetches.
brokers: 1,2,3,4

create orders with 1,2
4 tries to join orders-0
request orders-0 to 2,3
3 joins orders-0
1 tries to join orders-0
request orders-0 to 4,1
change orders-0 to 2,3
4 tries to join orders-0
