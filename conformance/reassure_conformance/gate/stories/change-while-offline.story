# No in-sync replica is alive when the target changes: nothing may be dropped until one is.
brokers: 1,2,3,4
profiles: kip-236-amended

create orders with 1,2
request orders-0 to 3,4
2 leaves orders-0
broker 1 dies
change orders-0 to 2,3
broker 1 returns
2 joins orders-0
3 joins orders-0
