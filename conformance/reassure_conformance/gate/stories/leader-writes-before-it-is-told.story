# A leader writes the in-sync set, of whose new epoch or successor it has not been told yet.
brokers: 1,2,3,4

create orders with 1,2,3
hold after 3
request orders-0 to 2,4
3 leaves orders-0
resume
hold after 1
4 joins orders-0
3 leaves orders-0
resume
