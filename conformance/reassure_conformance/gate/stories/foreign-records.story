# Foreign records, alone and beside one of ours, go, and the znode above them where none is left.
brokers: 1,2,3

create orders with 1,2
kill controller
plant foreign child-of-no-partition
plant foreign child-unreadable
elect
request orders-0 to 2,3
kill controller
plant foreign child-leading-zero
elect
3 joins orders-0
