# Two reassignments are in flight at one failover, one of them half written down.
brokers: 1,2,3,4

create orders with 1,2 and 2,1
request orders-0 to 3,4
hold after 2
request orders-1 to 4,2
kill controller
elect
3 joins orders-0
4 joins orders-0
4 joins orders-1
