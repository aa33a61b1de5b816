# Each controller dies before it has got through what it found; the third one has to finish.
brokers: 1,2,3

create orders with 1,2
hold after 1
request orders-0 to 2,3
kill controller
hold after 2
elect
kill controller
hold after 3
elect
kill controller
elect
3 joins orders-0
