"""ZooKeeper itself, knowing nothing of what is kept in it.

* `server`: a real server, embedded; `java` and `jars` find what it is made of.
* `interruptions`: end a session, cut a connection.
* `txnlog`: read transaction logs; `txnlog_writer` writes small ones.
* `snapshot` and `tree`: read snapshots, and replay transactions into the tree that the server had.
* `errors`: everything that the modules above raise.

Nothing here is imported by this module, so that each use pays only for what it needs.
"""
