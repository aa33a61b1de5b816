"""What a run kept beside its log: when its clusters were quiescent, so that both are judged again.

No log says that nothing more was to come. So the run writes it down, each moment as it comes, in
`rests.jsonl`: a line about the run, then a line for each moment, in the order of the log.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from reassure_conformance.gate.evidence import BadRun
from reassure_judge.judge import Judge
from reassure_mutation.recorder import Recorder
from reassure_spec.readings import Readings, UnknownReading, get_profile, override_readings
from reassure_zookeeper.transactions import Transaction

RESTS: Final = "rests.jsonl"
"""The file of a run's directory."""
QUIESCENT: Final = "quiescent"
"""All that a controller owes was judged."""
MISSED: Final = "not quiescent in time"
"""By then somebody had to be elected."""
FORGOTTEN: Final = "ended"
"""What came later of the cluster was judged no more."""


@dataclass(frozen=True, slots=True)
class Rest:
    """A moment at which a judge was told something of a cluster that no log shows."""

    zxid: int
    """The last transaction that had been judged by then."""
    chroot: str
    moment: str
    """`QUIESCENT`, `MISSED` or `FORGOTTEN`."""


_TELL: Final[Mapping[str, Callable[[Judge, str], None]]] = {
    QUIESCENT: Judge.quiesce,
    MISSED: Judge.miss_controller,
    FORGOTTEN: Judge.forget,
}


class RestsFile:
    """Writes the file as the run goes on: of one that is killed, what it had seen is kept."""

    def __init__(
        self, directory: Path, profile: str, readings: Readings, abilities: Iterable[str]
    ) -> None:
        self._path: Final = directory / RESTS
        head = {
            "profile": profile,
            "readings": readings.as_dict(),
            "capabilities": sorted(abilities),
        }
        self._path.write_text(json.dumps(head) + "\n", encoding="utf-8")

    def add(self, rest: Rest) -> None:
        """Add a moment."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(rest)) + "\n")


class NotingJudge(Judge):
    """A judge that keeps each moment of which it is told, where there is a file for it."""

    file: RestsFile | None = None

    def quiesce(self, chroot: str = "") -> None:
        """Judge what must hold while the cluster rests, and keep that it did."""
        self._keep(chroot, QUIESCENT)
        Judge.quiesce(self, chroot)

    def miss_controller(self, chroot: str = "") -> None:
        """Judge whether somebody was elected, and keep that it was time."""
        self._keep(chroot, MISSED)
        Judge.miss_controller(self, chroot)

    def forget(self, chroot: str) -> None:
        """Drop what is remembered of a cluster, and keep that it is."""
        self._keep(chroot, FORGOTTEN)
        Judge.forget(self, chroot)

    def _keep(self, chroot: str, moment: str) -> None:
        if self.file is not None:
            self.file.add(Rest(self._zxid, chroot, moment))


@dataclass(frozen=True, slots=True)
class Rests:
    """What the file of a run says."""

    path: Path
    profile: str
    readings: Mapping[str, str]
    capabilities: frozenset[str]
    moments: tuple[Rest, ...]

    def judge(
        self,
        transactions: Iterable[Transaction],
        profile: str,
        readings: Readings,
        **options: int,
    ) -> tuple[Judge, Recorder]:
        """Judge the log of the run as the run did, and return the judge and what it recorded.

        The options are those of `Judge`. Raises BadRun where the log ends before the last moment,
        and what reading it raises.
        """
        recorder = Recorder()
        judge = Judge(profile, readings, witness=recorder, **options)
        at = last = 0
        for transaction in transactions:
            while at < len(self.moments) and self.moments[at].zxid < transaction.zxid:
                self._tell(judge, at)
                at += 1
            judge.feed(transaction)
            last = transaction.zxid
        while at < len(self.moments) and self.moments[at].zxid <= last:
            self._tell(judge, at)
            at += 1
        if at < len(self.moments):
            raise BadRun(
                f"{self.path}:{at + 2}: zxid 0x{self.moments[at].zxid:x} is beyond the log, which "
                f"ends at 0x{last:x}; move {RESTS} away to audit the log by itself"
            )
        return judge, recorder

    def _tell(self, judge: Judge, at: int) -> None:
        moment = self.moments[at]
        _TELL[moment.moment](judge, moment.chroot)


def read_rests(directory: Path) -> Rests | None:
    """Return what stands in the file of a run's directory, None where there is none.

    A last line without its end is of a run that was killed, and does not count. Raises BadRun, with
    file and line.
    """
    path = directory / RESTS
    if not path.is_file():
        return None
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")[:-1]
    except (OSError, ValueError) as error:
        raise BadRun(f"{path}:1: cannot be read: {error}") from error
    if not lines:
        raise BadRun(f"{path}:1: expected a line about the run; move the file away to do without")
    head = _read_line(path, 1, lines[0], {"profile": str, "readings": dict, "capabilities": list})
    moments: list[Rest] = []
    for number, line in enumerate(lines[1:], start=2):
        said = _read_line(path, number, line, {"zxid": int, "chroot": str, "moment": str})
        if said["moment"] not in _TELL:
            raise BadRun(f"{path}:{number}: moment is {said['moment']!r}, expected {_MOMENTS}")
        if moments and said["zxid"] < moments[-1].zxid:
            raise BadRun(f"{path}:{number}: zxid is smaller than that of the line before")
        moments.append(Rest(said["zxid"], said["chroot"], said["moment"]))
    profile, readings = head["profile"], head["readings"]
    try:
        override_readings(get_profile(profile), readings)
    except UnknownReading as error:
        raise BadRun(f"{path}:1: {error}") from error
    return Rests(path, profile, readings, frozenset(head["capabilities"]), tuple(moments))


_MOMENTS: Final = " or ".join(map(repr, _TELL))


def _read_line(path: Path, number: int, line: str, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the object on a line, which has these names and no others."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRun(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(said, dict) or said.keys() != kinds.keys():
        raise BadRun(f"{path}:{number}: expected an object with {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(said[name]) is not kind:
            raise BadRun(f"{path}:{number}: {name} is no {kind.__name__}")
    return said
