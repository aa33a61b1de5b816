# Records that nobody could have written go from beside one that is in flight, which stays.
brokers: 1,2,3

create orders with 1,2 and 2,3
request orders-1 to 3,1
kill controller
plant foreign child-unreadable
plant foreign child-name
elect
request orders-0 to 2,3
1 joins orders-1
3 joins orders-0
