"""What controllers and brokers can be asked about themselves, in Prometheus' format.

`tally` counts what happens and knows no Prometheus; `measures` looks at a controller or broker when
it is asked, and `serving` answers over HTTP. Nothing is global: each process object has counts and
a registry of its own.
"""
