# The answer to the first state of a partition is lost: its brokers must be told all the same.
brokers: 1,2

lose answer after 0
create orders with 1,2
