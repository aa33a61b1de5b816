# The next controller finds a change to a target that is assigned already, and its drop not done.
brokers: 1,2,3,4

create orders with 1
request orders-0 to 2,3
hold after 1
change orders-0 to 2
kill controller
elect
2 joins orders-0
