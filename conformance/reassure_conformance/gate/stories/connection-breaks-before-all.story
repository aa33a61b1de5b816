# Every watch is lost with the connection: deaths, returns, topics and requests are still noticed.
brokers: 1,2,3

create orders with 1,2
cut connection
broker 1 dies
cut connection
broker 1 returns
cut connection
create events with 2,3
cut connection
request events-0 to 3,1
cut connection
1 joins events-0
