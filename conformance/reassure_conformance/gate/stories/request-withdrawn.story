# A client takes a request back before the controller has come to it.
brokers: 1,2,3

create orders with 1,2
kill controller
request orders-0 to 2,3
withdraw request
request orders-0 to 3,1
elect
3 joins orders-0
hold after 0
request orders-0 to 2,3
withdraw request
resume
request orders-0 to 2,3
