# Znodes that are not ours, in the queue and among the records, do not stop what is ours.
brokers: 1,2,3

create orders with 1,2
plant foreign queue-name
plant foreign queue-short-number
plant foreign child-of-no-topic
plant foreign child-of-no-partition
request orders-0 to 2,3
kill controller
elect
3 joins orders-0
