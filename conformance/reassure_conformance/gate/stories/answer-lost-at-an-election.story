# The answer to an election is lost: whoever was elected must be told all the same.
brokers: 1,2,3

create orders with 1,2,3
lose answer after 0
broker 1 dies
