"""The virtual world: a ZooKeeper, its clients and a clock that nothing moves but what is done.

No thread, no socket, and no look at the time of day: what happens comes of what is called, in the
order in which it is called, so that the same calls make the same history, byte for byte.
"""
