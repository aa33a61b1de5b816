"""Kafka's wire protocol: requests and responses as values, as bytes, and over TCP.

`messages` are the values that a handler gets and gives, `apis` which versions of them are spoken,
`frames` their bytes by the schemas of kio, `listener` and `client` the two ends of a connection.
"""
