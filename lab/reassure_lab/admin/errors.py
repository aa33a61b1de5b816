"""What the tool refuses, and why."""

from reassure_spec.errors import BadData, BadUsage, Unavailable


class BadFile(BadData):
    """A file is not of Kafka's format, or contradicts itself."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}, line {line}: {reason}")
        self.file = file
        self.line = line


class NotThere(BadUsage):
    """A file names a partition, a broker or a topic that the cluster does not have."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}, line {line}: {reason}")
        self.file = file
        self.line = line


class NotNow(BadUsage):
    """What is asked for cannot be done as the cluster is at the moment."""


class ClusterNotFound(Unavailable):
    """No ZooKeeper answers, or there is no Kafka cluster in it."""


class Unsettled(Unavailable):
    """It is not known whether what was asked for was done."""


class BadContent(BadData):
    """A znode is not of the documented format."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
