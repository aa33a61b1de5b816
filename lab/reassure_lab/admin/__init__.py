"""What an operator does about reassignments, by way of ZooKeeper alone.

The verbs of Kafka's own tool (`verbs`), with its files (`move_files`) and its words (`phrases`), by
either protocol: requests of KIP-236, or the old znode, which a real Kafka listens to as well.
`proposing` spreads replicas over brokers as Kafka does, `survey` reads what there is, `limiting`
says which replicas a limit holds for, and `asking` asks for it.
"""
