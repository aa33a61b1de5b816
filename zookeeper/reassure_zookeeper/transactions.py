"""What a transaction log records: transactions, each with the changes it made.

A `Transaction` carries its place in the total order (`zxid`), who asked for it, and `ops`: one op
for a plain request, several for a multi, all under one zxid.  To tell ops apart use their class or,
cheaper, the integer `kind`, which is ZooKeeper's own code for the main form of the op; `variant` is
the code of the request.

A request that the server refused is recorded too.  A refused plain request leaves `Error` as its
only op, with nothing said about what was asked for.  A refused multi is recorded with what it asked
for up to the op that failed; here its `ops` are all `Error`, as in the server's answer to the
client, so that nobody applies them by mistake, and the record itself is in `attempted`.

The classes are checked as frozen; at run time they are ordinary slotted classes, which are made
three times faster, and logs have many of them.  Do not assign to their fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeVar, dataclass_transform

from reassure_zookeeper.jute import NO_DATA, OPEN_ACL, Acl

ERROR = -1
CREATE_SESSION = -10
CLOSE_SESSION = -11
CREATE = 1
DELETE = 2
SET_DATA = 5
SET_ACL = 7
CHECK = 13
MULTI = 14
CREATE2 = 15
RECONFIG = 16
CREATE_CONTAINER = 19
DELETE_CONTAINER = 20
CREATE_TTL = 21

RUNTIME_INCONSISTENCY = -2
"""Error code of the ops of a multi that come after the one that failed."""

_T = TypeVar("_T")

if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(cls: type[_T]) -> type[_T]:
        """Make a frozen slotted value class."""
        return cls

else:
    record = dataclass(slots=True, unsafe_hash=True)


@record
class Create:
    """A node was created; `parent_cversion` is the creation count of its parent from then on.

    `variant` is the request's code: `CREATE`, `CREATE2`, `CREATE_CONTAINER` or `CREATE_TTL`;
    `ttl_ms` counts only for the last.  `path` is final, the number of a sequential node included.
    """

    path: str
    data: bytes = NO_DATA
    acl: tuple[Acl, ...] = OPEN_ACL
    ephemeral: bool = False
    parent_cversion: int = -1
    variant: int = CREATE
    ttl_ms: int = 0
    kind: ClassVar[int] = CREATE


@record
class Delete:
    """A node was deleted; `variant` says whether by a request or as an outlived container."""

    path: str
    variant: int = DELETE
    kind: ClassVar[int] = DELETE


@record
class SetData:
    """A node got new data and with it the data version `version`."""

    path: str
    data: bytes
    version: int
    kind: ClassVar[int] = SET_DATA
    variant: ClassVar[int] = SET_DATA


@record
class Reconfig:
    """The ensemble's configuration node got new data."""

    path: str
    data: bytes
    version: int
    kind: ClassVar[int] = RECONFIG
    variant: ClassVar[int] = RECONFIG


@record
class SetAcl:
    """A node got a new access control list and with it the list version `version`."""

    path: str
    acl: tuple[Acl, ...]
    version: int
    kind: ClassVar[int] = SET_ACL
    variant: ClassVar[int] = SET_ACL


@record
class Check:
    """A node was found to have the expected data version.

    Nothing changes; `version` is as the server logs it, which is one more than the version found,
    or what was asked for where that is -1 ("any").
    """

    path: str
    version: int
    kind: ClassVar[int] = CHECK
    variant: ClassVar[int] = CHECK


@record
class CreateSession:
    """A session began, with the timeout that was agreed."""

    timeout_ms: int
    kind: ClassVar[int] = CREATE_SESSION
    variant: ClassVar[int] = CREATE_SESSION


@record
class CloseSession:
    """A session ended, by its client's wish or by expiry.

    `paths` are the ephemeral nodes that go with it; None where the server did not record them.
    """

    paths: tuple[str, ...] | None = None
    kind: ClassVar[int] = CLOSE_SESSION
    variant: ClassVar[int] = CLOSE_SESSION


@record
class Error:
    """A request, or one op of a multi, was refused with an error code of ZooKeeper's.

    A server that has applied a refused multi marks the ops before the one that failed as errors and
    leaves what they asked for, without saying what kind of op that was. A follower that was away is
    sent the multi so, and logs it so: then `overwritten` is what was asked for, and `code` is 0.
    """

    code: int
    overwritten: bytes = b""
    kind: ClassVar[int] = ERROR
    variant: ClassVar[int] = ERROR


Op = Create | Delete | SetData | Reconfig | SetAcl | Check | CreateSession | CloseSession | Error


@record
class Transaction:
    """One record of a transaction log.

    `session_id` is a signed 64-bit number, as kazoo gives it; `time_ms` is the server's clock in
    milliseconds since 1970; `type` the request's code.  `error` is None for what took effect, else
    the code of what failed.  `digest` is what follows the record's body, the server's hash of its
    tree, kept for copying only.
    """

    session_id: int
    cxid: int
    zxid: int
    time_ms: int
    type: int
    ops: tuple[Op, ...]
    error: int | None = None
    attempted: tuple[Op, ...] = ()
    digest: bytes = field(default=b"", repr=False, compare=False)


def committed(
    *ops: Op, zxid: int, session_id: int = 0, cxid: int = 0, time_ms: int = 0
) -> Transaction:
    """Make the transaction of one op; of several, or none, the multi of them."""
    kind = ops[0].variant if len(ops) == 1 else MULTI
    error = ops[0].code if len(ops) == 1 and isinstance(ops[0], Error) else None
    return Transaction(session_id, cxid, zxid, time_ms, kind, ops, error)


def multi(
    *recorded: Op, zxid: int, session_id: int = 0, cxid: int = 0, time_ms: int = 0
) -> Transaction:
    """Make a multi of what is recorded in it; refused if one of its ops is an `Error`."""
    return multi_of(session_id, cxid, zxid, time_ms, recorded)


def multi_of(
    session_id: int,
    cxid: int,
    zxid: int,
    time_ms: int,
    recorded: tuple[Op, ...],
    digest: bytes = b"",
) -> Transaction:
    """Make a multi from its header and its ops as recorded, as the server reads it back."""
    if Error not in map(type, recorded):
        return Transaction(session_id, cxid, zxid, time_ms, MULTI, recorded, None, (), digest)
    error: int | None = None
    outcome: list[Op] = []
    for op in recorded:
        if isinstance(op, Error):
            error = error or op.code
            outcome.append(Error(op.code))
        else:
            outcome.append(Error(0 if error is None else RUNTIME_INCONSISTENCY))
    return Transaction(
        session_id, cxid, zxid, time_ms, MULTI, tuple(outcome), error, recorded, digest
    )
