"""A whole cluster as processes under random faults, with clients that write down what they saw.

`schedule` draws the faults from a seed, `network` puts proxies between the members, `client` speaks
to the brokers, `load` produces, consumes and asks for reassignments, `checking` says what should
have held, `leaks` what should not be left, and `running` puts them together.
"""
