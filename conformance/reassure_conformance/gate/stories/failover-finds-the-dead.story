# Brokers die while no controller acts: the next one finds nothing but that they are not there.
brokers: 1,2,3,4

create orders with 1,2,3
create events with 4,1,2
kill controller
broker 1 dies
elect
kill controller
broker 1 returns
broker 4 dies
elect
