"""A whole cluster as processes under random faults, with clients that write down what they saw.

`schedule` draws the faults from a seed, `proxies` stand between the members, `traffic` speaks to
the brokers, `load` produces, consumes and asks for reassignments, `checker` says what should have
held, `leftovers` what should not be left, and `one_soak` puts them together.
"""
