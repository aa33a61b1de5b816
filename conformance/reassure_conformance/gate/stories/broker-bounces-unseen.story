# A broker dies and is back before the controller looks: it knows nothing any more and has to be told.
brokers: 1,2,3

create orders with 1,2,3
create events with 1,2
hold after 0
request events-0 to 2,1
broker 3 dies
broker 3 returns
resume
