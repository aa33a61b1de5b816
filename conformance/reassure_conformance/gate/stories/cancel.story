# Asking for the original replicas undoes a reassignment, in sync or not.
brokers: 1,2,3,4

create orders with 1,2
request orders-0 to 3,4
3 joins orders-0
cancel orders-0
