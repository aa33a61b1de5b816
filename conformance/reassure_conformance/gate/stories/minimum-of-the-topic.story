# What a topic says of its min.insync.replicas counts, whatever the brokers' default is.
brokers: 1,2,3

create orders with 1,2
set min isr of orders to 3
request orders-0 to 2,3
set default min isr to 3
set min isr of orders to 2
request orders-0 to 2,3
3 joins orders-0
