# A target replica falls behind when the old ones are stopped and only the assignment is left to write.
brokers: 1,2,3

create orders with 1,2
request orders-0 to 1,3
hold after 6
3 joins orders-0
3 leaves orders-0
resume
3 joins orders-0
