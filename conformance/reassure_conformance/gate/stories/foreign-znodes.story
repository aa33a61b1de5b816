# Znodes that are not ours, in the queue and among the records, do not stop what is ours.
brokers: 1,2,3

create orders with 1,2
plant foreign queue-name
plant foreign queue-short-number
request orders-0 to 2,3
kill controller
plant foreign child-of-no-topic
plant foreign child-of-no-partition
plant foreign child-name
elect
3 joins orders-0
