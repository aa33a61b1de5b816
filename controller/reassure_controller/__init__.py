"""The controller that carries out the reassignment protocol, and the brokers that obey it.

A controller is `controller.Controller`, a broker `broker.Broker`; `session.connect` makes the
ZooKeeper clients they need and `transport` carries what they say to each other. What the
controller does is planned as data (`plan`, `effects`) and carried out by a small engine (`engine`)
that can be stopped between any two effects.
"""
