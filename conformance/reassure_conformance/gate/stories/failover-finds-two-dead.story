# Two followers die while there is no controller: the next one takes both out of the in-sync set.
brokers: 1,2,3

create orders with 1,2,3
kill controller
broker 2 dies
broker 3 dies
elect
