# Watches do not survive a broken connection; what happens afterwards must be seen all the same.
brokers: 1,2,3

create orders with 1,2
cut connection
request orders-0 to 2,3
3 joins orders-0
