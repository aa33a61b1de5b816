"""What is built of the other rooms, and none of them needs: clusters, soaks, archives, a tool.

`cluster` runs ZooKeeper, brokers and controllers as processes; `node`, `wire` and `metrics` are
what such a process has of Kafka's protocol and of Prometheus. `admin` reassigns partitions of a
running cluster, `soak` disturbs one and checks it, `archives` writes histories to audit. `cli` has
the verbs, `answers` what they answer.
"""
