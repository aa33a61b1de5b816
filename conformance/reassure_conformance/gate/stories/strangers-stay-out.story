# Who is not assigned, or no more, or has died, is not taken in sync however often it has fetched.
brokers: 1,2,3,4

create orders with 1,2
4 tries to join orders-0
request orders-0 to 2,3
3 joins orders-0
1 tries to join orders-0
request orders-0 to 4,1
change orders-0 to 2,3
4 tries to join orders-0
broker 3 dies
3 tries to join orders-0
