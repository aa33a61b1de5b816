"""A whole cluster as processes under random faults, with stock clients that say what they saw.

`schedule` draws faults and operations from a seed, `proxies` stand between the members, `workload`
is the clients, `operator` moves partitions, `seen_events` is what they write, `checker` says by
that alone what is broken, `guarantees` what should hold and how often it was put to the test.
`replicas` compares files, `judging` judges logs, `leftovers` what should not be left; `one_soak`
puts them together, and `own_mistakes` plants what a soak has to find.
"""
