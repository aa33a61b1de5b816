"""Every reachable state of a finite model: counted, checked, and told as the shortest trace.

`engine` takes anybody's model and knows nothing of Kafka. `scopes` has the reference models of
`reassure_model` within small worlds, and what comes out there.
"""
