"""What the tables that an audit leaves hold: every column with its type, and what it says.

The types are Spark's. A page of the documentation is made from this, the tables that Python writes
are written by it, and a test holds all of them against it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Column(NamedTuple):
    """One column."""

    name: str
    kind: str
    """Type in Spark's SQL."""
    about: str


class Table(NamedTuple):
    """One table."""

    about: str
    """What there is a row for."""
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """The columns as Spark's SQL declares them."""
        return ", ".join(f"{column.name} {column.kind}" for column in self.columns)


def _make_table(about: str, text: str) -> Table:
    lines = (line.split(" | ") for line in text.strip().splitlines())
    return Table(about, tuple(Column(*(part.strip() for part in line)) for line in lines))


_ARCHIVE: Final = """
archive | string | folder of the log files
"""
_PLACE: Final = f"""{_ARCHIVE.rstrip()}
chroot | string | of the cluster, empty for none
topic | string | empty where it is about the cluster
partition | int | -1 where it is about the cluster
"""

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "transactions": _make_table(
            "operation in the logs, those refused and those of no interest included",
            """
file | string | log file
offset | bigint | byte at which the record of its transaction begins
zxid | bigint | place in the total order
session | bigint | session that wrote
cxid | int | number of the request in that session
time_ms | bigint | the server's clock, in milliseconds since 1970
type | int | request code of the transaction
error | int | ZooKeeper's error code where it was refused, else null
op | int | number of the operation in its transaction, from 0; null where it has none
kind | string | create, delete, set_data, check, set_acl, reconfig, create_session, close_session
path | string | the znode
data | binary | content that was written
version | int | data version that a write leaves, or that was checked
ephemeral | boolean | whether the znode goes with its session
damage | string | what is wrong at this byte; all but file and offset are null there
""",
        ),
        "changes": _make_table(
            "change of a znode that took effect; what goes with the end of a session is in none",
            f"""{_ARCHIVE.rstrip()}
path | string | the znode, chroot included
zxid | bigint | the transaction
op | int | number of the operation in it
kind | string | create, set_data or delete
session | bigint | session that wrote
time_ms | bigint | the server's clock, in milliseconds since 1970
version | int | data version that it leaves
before | binary | content before, as far as the logs tell
after | binary | content after, null where it is gone
""",
        ),
        "partitions": _make_table(
            "write of the leader and in-sync set of a partition",
            f"""{_PLACE.rstrip()}
zxid | bigint | the transaction
kind | string | create, set_data or delete
session | bigint | session that wrote
time_ms | bigint | the server's clock, in milliseconds since 1970
leader | int | -1 for none
leader_epoch | int | the leader's epoch
controller_epoch | int | epoch of the controller that wrote the leader last
isr | array<int> | in-sync replicas
isr_before | array<int> | in-sync replicas before
""",
        ),
        "reassignments": _make_table(
            "reassignment of a partition, by whatever route, those under way at the end included",
            f"""{_PLACE.rstrip()}
route | string | what said that it is under way: record, legacy record, lists, entry
first_zxid | bigint | the transaction that began it; null where it was under way already
last_zxid | bigint | the transaction that ended it; null where it is under way
started_ms | bigint | when it began, in milliseconds since 1970
ended_ms | bigint | when it ended
outcome | string | completed, taken back (what was assigned before is again), given up, under way
changes | int | how often another target took the place of the one before
before | array<int> | assigned when it began
first_target | array<int> | where it was to go at first
last_target | array<int> | where it was to go in the end
after | array<int> | assigned when it ended
drops | int | how often replicas were taken out of the assignment, other than by its end
dropped | array<array<int>> | which ones, of the first 100 drops
leaders | array<int> | who led when it began, and whoever was elected until its end; the first 100
first_epoch | int | controller epoch when it began
last_epoch | int | controller epoch when it ended
duration_ms | bigint | how long it took; null where its beginning or end was not seen
moved | int | replicas that it put where there was none of the partition
""",
        ),
        "violations": _make_table(
            "finding, settled or not: all of them, however many",
            f"""{_PLACE.rstrip()}
clause | string | the clause that was broken
settled | boolean | whether the history before it is known well enough to call it a violation
zxid | bigint | the transaction; for a pending write, the last one before the cluster was quiescent
path | string | the znode, without the chroot
session | bigint | session that wrote; 0 for a write that is missing
author | string | who that was
time_ms | bigint | the server's clock, in milliseconds since 1970
before | string | content before
after | string | content after
reason | string | what is wrong
expected | string | what would have been allowed
besides | array<string> | clauses that the same write broke as a consequence
""",
        ),
        "coverage": _make_table(
            "clause that came up in an archive",
            f"""{_ARCHIVE.rstrip()}
clause | string | the clause
exercised | bigint | how often it was exercised and holds
undecided | bigint | how often it is undecided
""",
        ),
    }
)
"""By name, in the order in which they are made."""
