"""A broker with logs as a process: its wire, its fetchers and its timers.

`orders` carries what a controller says, `request_handler` serves whoever connects, `metadata` reads
ZooKeeper for those who ask who leads, `fetching` asks leaders, and `node` puts them together. One
lock guards the broker: a thread that waits for something to happen waits on it.
"""
