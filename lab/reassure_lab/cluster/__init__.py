"""A cluster of processes on this machine: ZooKeeper servers, brokers with logs, controllers.

`supervisor.Cluster` starts, ends, stops and revives them; `state` is the file by which another
process finds them again; `processes` and `ports` are what the system has of them.
"""
