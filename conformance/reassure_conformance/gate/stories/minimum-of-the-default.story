# Topics that do not say their min.insync.replicas have the brokers' default, as it is by now.
brokers: 1,2,3

create orders with 1,2
set default min isr to 2
request orders-0 to 2,3
3 joins orders-0
set default min isr to 3
request orders-0 to 1,2
set default min isr to 1
request orders-0 to 1,2
1 joins orders-0
create events with 1,2
set default min isr to 3
request events-0 to 2,3
