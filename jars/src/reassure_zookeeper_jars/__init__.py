"""Holds the jars of a ZooKeeper server beside this file; `reassure_zookeeper.jars` finds them."""
