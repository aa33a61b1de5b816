"""What the tables that audits append to hold: every column with its type, and what it says.

The types are those of Spark's SQL. A page of the documentation is made from this, and every table
is written by it, whichever engine judged. `transactions` is what the data source reads
(`txnlog_source`), the others are what is written (`tables.fleet_tables`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pyarrow import DataType, Schema


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

    def make_schema(self) -> "Schema":
        """Return the columns as Arrow has them."""
        import pyarrow

        return pyarrow.schema([(column.name, _find_arrow(column.kind)) for column in self.columns])


def _find_arrow(kind: str) -> "DataType":
    """Return Arrow's type for one of Spark's SQL; times are in microseconds, of UTC."""
    import pyarrow

    if kind.startswith("array<"):
        return pyarrow.list_(_find_arrow(kind[6:-1]))
    if kind == "timestamp":
        return pyarrow.timestamp("us", "UTC")
    names = {"bigint": "int64", "int": "int32", "boolean": "bool", "date": "date32"}
    return pyarrow.type_for_alias(names.get(kind, kind))


def _make_table(about: str, text: str) -> Table:
    lines = (line.split(" | ") for line in text.strip().splitlines())
    return Table(about, tuple(Column(*(part.strip() for part in line)) for line in lines))


_ARCHIVE: Final = """
day | date | of its last transaction, by the server's clock; tables are partitioned by it
archive | string | folder of the log files
judged | string | digest of what was judged and how: of these files as they were, by this version
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
        "archives": _make_table(
            "archive, judged or not, whenever it was judged anew",
            f"""{_ARCHIVE.rstrip()}
verdict | string | holds, violated, unknown, vacuous (nothing was put to the test) or not judged
reason | string | why it was not judged, or what a verdict on all of it lacks
profile | string | by which it was judged
recognised | string | what showed the profile; null where it was named, or nothing did
readings | string | those by which it was judged, as JSON
version | string | of the judge
run | timestamp | when the audit began that appended the row
clusters | array<string> | chroots of the clusters
begins | string | beginning, snapshot or middle
first_zxid | bigint | first transaction in the files
last_zxid | bigint | last one
first_time | timestamp | when the first one was that was judged
last_time | timestamp | when the last one was
transactions | bigint | how many there are behind what it begins from
passed_over | bigint | how many of those that were read no rule was asked about
missing | bigint | how many are known to be missing in gaps
partitions | bigint | how many were met
violations | bigint | settled findings that bind
not_followed | bigint | settled findings of advice
unsettled | bigint | findings that may be due to what is missing
holes | int | gaps in the transactions
damaged | int | places that cannot be read
""",
        ),
        "clusters": _make_table(
            "cluster in an archive that was judged",
            f"""{_ARCHIVE.rstrip()}
chroot | string | of the cluster, empty for none
verdict | string | holds, violated, unknown or vacuous (nothing was put to the test)
profile | string | by which it was judged
release | string | of Kafka, as far as the logs show it; null where they do not
partitions | bigint | how many were met
violations | bigint | settled findings that bind
not_followed | bigint | settled findings of advice
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
        "findings": _make_table(
            "finding, settled or not: all of them, however many",
            f"""{_PLACE.rstrip()}
clause | string | the clause that was broken
level | string | of the clause: MUST, SHOULD or MAY
settled | boolean | whether the history before it is known well enough to call it a violation
zxid | bigint | the transaction; for a pending write, the last one before the cluster was quiescent
time | timestamp | when that was, by the server's clock
path | string | the znode, without the chroot
session | bigint | session that wrote; 0 for a write that is missing
author | string | who that was
before | string | content before
after | string | content after
reason | string | what is wrong
expected | string | what would have been allowed
besides | array<string> | clauses that the same write broke as a consequence
cause | bigint | the transaction that began the incident that it follows from; null for the first
""",
        ),
        "incidents": _make_table(
            "wound: a settled violation that binds, with those that are its consequence",
            f"""{_ARCHIVE.rstrip()}
chroot | string | of the cluster, empty for none
topic | string | empty where it is about the cluster
partitions | array<int> | those of the topic in which one transaction did it; -1 for the cluster
clause | string | that which was broken first
first_zxid | bigint | the transaction that broke it
last_zxid | bigint | that of the last consequence; the same where there is none
first_time | timestamp | when the first one was, by the server's clock
last_time | timestamp | when the last one was
author | string | who wrote it
path | string | the znode, without the chroot
reason | string | what is wrong
besides | array<string> | clauses that the same write broke
consequences | array<string> | clauses that were broken by what followed from it, each once
followed | bigint | how many findings that is: in `findings` their `cause` is its first_zxid
risk | string | what is at risk
remedy | string | what to do about it
bugs | array<string> | published bugs of Apache Kafka, or findings, that have this shape
""",
        ),
        "facts": _make_table(
            "sum of what is told beyond verdicts",
            f"""{_ARCHIVE.rstrip()}
fact | string | what is counted, as `facts` of the result document calls it: reassignments.started
value | bigint | how often, or for how long where it ends in _ms
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
"""By name."""
