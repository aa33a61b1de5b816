# Contents that no tool would write must leave the queue and change nothing.
brokers: 1,2,3

create orders with 1,2
send not-json request
send not-an-object request
send no-content request
send wrong-version request
send unknown-key request
send duplicate-key request
send no-assignments request
send replicas-not-a-list request
send replica-not-a-number request
send partition-not-a-number request
request orders-0 to 2,3
