# Requests that wait together are carried out by number; the last one wins.
brokers: 1,2,3,4

create orders with 1,2
hold after 0
burst orders-0 to 2,3 then orders-0 to 2,4 then orders-0 to 1,4
resume
4 joins orders-0
