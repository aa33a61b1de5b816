# A topic that asks for more in-sync replicas than it has is not reassigned until it has grown.
brokers: 1,2,3

create orders with 1 min isr 2
request orders-0 to 2,3
create events with 1,2 min isr 2
request events-0 to 2,3
3 joins events-0
