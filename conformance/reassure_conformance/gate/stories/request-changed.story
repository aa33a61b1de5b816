# A client changes a request under the controller: before its record and after it.
brokers: 1,2,3,4

create orders with 1,2
hold after 0
request orders-0 to 2,3
rewrite request as orders-0 to 2,4
resume
4 joins orders-0
hold after 1
request orders-0 to 1,3
rewrite request as orders-0 to 1,4
resume
