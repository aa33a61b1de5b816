# After a failover top is what it was when the chain began, though more replicas are assigned now.
brokers: 1,2,3,4,5

create orders with 1,2
request orders-0 to 3,4
kill controller
elect
3 joins orders-0
change orders-0 to 1,5
5 joins orders-0
