"""Apache Kafka itself as an implementation under test: `kafka:VERSION`.

`kafka_jars` gets the jars of a version, `kafka_brokers` runs brokers of it, `kafka_adapter` is what
the gate drives.
"""
