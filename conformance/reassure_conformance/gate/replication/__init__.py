"""The gate of KAFKA-4485: brokers with logs, stepped, and judged by what they observe.

`steps` is the alphabet, `example` carries steps out on a cluster and judges what came of them,
`generation` draws them, and `running` is one run.
"""
