"""History in, verdicts out: holds a ZooKeeper transaction log against the reference model."""
