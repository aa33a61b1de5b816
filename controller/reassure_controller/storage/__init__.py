"""A broker's disk: logs of record batches, and the small files beside them, as Kafka has them.

`records` is the format of batches, `log` the log of one partition in segment files, `epochs` the
offsets at which leaders' epochs began, `checkpoints` the text files of offsets, and `directory`
what one broker owns. Nothing here knows of ZooKeeper, of networking, or of the time of day.
Nothing here locks against other threads of the same process: one thread at a time uses a log.
"""
