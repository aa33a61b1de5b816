"""The words of a proof: parameters, hypotheses, claims, subjects, theorems. Needs no solver."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

from reassure_proofs.engine.formula import Truth
from reassure_spec.readings import Readings, get_profile, override_readings

Values: TypeAlias = Mapping[str, Any]
"""The arguments by name: integers and tuples of integers, all plain or all symbolic."""
Function: TypeAlias = Callable[[Values], object]
"""The code under test; picks its arguments from the values."""


LEMMA: Final = ""
"""In place of a clause: the theorem says something of the model itself, which no document asks."""
NO_CONTROLLER: Final = "no controller is asked for it"
"""Why no controller shows a counterexample, where nothing else is said."""
THOROUGH: Final = 5
"""The replication factor from which on theorems are looked at as far as is bearable at all."""


REORDERINGS: Final[dict[Callable[..., Any], str]] = {}
"""Functions that list orders of their first argument, each with the theorem that says no more: in
place of their code proofs for any number of brokers go by that."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument, or one sequence of arguments, without bounds on the integers."""

    length: int | None = None
    """Number of elements of a sequence, None for a single value."""
    floor: int = 0
    """Counterexamples are sought from here upwards first. Taste, not a hypothesis."""
    kind: str = "integer"
    """`integer`, `natural` for one that is not negative, `truth` for a truth value, `set` for any
    set of integers at all, `word` for a word that tells shapes apart; where brokers are of any
    number, `broker` for one of them, `list` for a list of any length and `column` for a number for
    each member of the list that `word` names."""
    word: str = ""
    """The word."""

    @property
    def any_length(self) -> str | None:
        """Return `any` for a list of any length."""
        return "any" if self.kind == "list" else None


ID: Final = Parameter(floor=1)
"""One broker, or another number that is told from 1 on."""
SET: Final = Parameter(kind="set")
TRUTH: Final = Parameter(kind="truth")
BROKER: Final = Parameter(kind="broker")
LIST: Final = Parameter(kind="list")


def ids(length: int) -> Parameter:
    """Return a list of brokers."""
    return Parameter(length, floor=1)


def word(text: str) -> Parameter:
    """Return a word that tells shapes apart."""
    return Parameter(kind="word", word=text)


Shape: TypeAlias = Mapping[str, Parameter]
"""The arguments of one proof by name. Lengths are plain numbers, so each shape is proved alone."""


def is_any_size(shape: Shape) -> bool:
    """Return whether brokers are of any number in a shape."""
    return any(parameter.kind in ("broker", "list") for parameter in shape.values())


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A condition under which something is claimed."""

    name: str
    """Short name, as in the table of which hypotheses are needed."""
    sentence: str
    """The condition in words."""
    holds: Callable[[Values], Truth]
    """The condition as a formula, see `engine.formula`."""


Claim: TypeAlias = Callable[[Values, Any], Truth]
"""A formula over the arguments and what the code returned for them."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A function of the model and the shapes in which it is looked at."""

    name: str
    """Stable name; theorems about one subject share their explorations."""
    function: Function
    """Calls the model with the arguments it needs."""
    words: str
    """What it is, as the subject of a sentence."""
    shapes: Callable[[int], Iterator[Shape]]
    """All shapes up to a replication factor, smallest first."""
    bounded: str = "up to {} brokers"
    """What is bounded, in words, with `{}` for the bound."""
    any_size: Callable[[], Shape] | None = None
    """The arguments where lists have any length; what is claimed is then proved of these, and the
    shapes show which hypotheses are needed. None where brokers are bounded."""
    hashable: bool = False
    """Whether the code may put values in sets, see `engine.symex.PathExplorer.hashable`."""
    weight: int = 1
    """How much a shape costs beside those of other subjects; the costliest are begun first."""
    under: Callable[[Readings], Function] | None = None
    """The same code under other readings than the profile's, None where it takes none."""
    tell: Callable[[Values], tuple[str, ...]] | None = None
    """Tells plain arguments in the commands of a scenario, of which the first makes the world; None
    where no world has the commands for it."""
    profile: str = ""
    """The profile whose readings the code was given, "" where it takes none."""
    changes: tuple[str, ...] = ()
    """The readings that it was given otherwise, as `name=value`."""
    told_under: tuple[str, ...] = ()
    """Readings that a scenario is told under beside those, as `name=value`."""
    needs: int = 2
    """Replication factor in which the hypotheses of its theorems show that they are needed."""
    numbered: bool = False
    """Whether brokers have plain numbers, at which no function may look (`engine.numbers`)."""
    shown: "Callable[[Theorem, Values], tuple[Any, Any]] | str" = NO_CONTROLLER
    """Finds a state that a controller shows a counterexample in, and where the model's one comes to
    rest; or says why there is none. Raises `engine.replays.NotShown`."""


def choose_readings(profile: str, changes: Iterable[str] = ()) -> Readings:
    """Return the readings of a profile with changes, each `name=value`.

    >>> from reassure_spec.profiles import DEFAULT_PROFILE
    >>> choose_readings(DEFAULT_PROFILE, ["drop.slice=exclusive"]).drop_slice
    'exclusive'
    """
    return override_readings(get_profile(profile), dict(change.split("=", 1) for change in changes))


def make_subject(
    name: str,
    function: Callable[..., object],
    words: str,
    shapes: Callable[[int], Iterator[Shape]],
    profile: str = "",
    changes: tuple[str, ...] = (),
    **more: Any,
) -> Subject:
    """Return a subject; one with a profile is given its readings, with these changes.

    `function` is given the values, and the readings as `readings`.
    """
    if not profile:
        return Subject(name, function, words, shapes, **more)

    def under(readings: Readings) -> Function:
        return partial(function, readings=readings)

    given = under(choose_readings(profile, changes))
    return Subject(
        name, given, words, shapes, under=under, profile=profile, changes=changes, **more
    )


def subject(
    name: str, words: str, shapes: Callable[[int], Iterator[Shape]], **more: Any
) -> Callable[[Callable[..., object]], Subject]:
    """Make a subject of the function that stands below, see `make_subject`."""
    return lambda function: make_subject(name, function, words, shapes, **more)


@dataclass(frozen=True, slots=True)
class Theorem:
    """One claim, and what is expected to come of it."""

    name: str
    """Stable name, as used by `reassure prove NAME`."""
    clause: str
    """Id of the clause that it states, `LEMMA` where it states none. Where a refutation is
    expected, that is the clause which cures what is refuted; it may then stand in a later profile
    only."""
    statement: str
    """The claim in words."""
    subject: Subject
    """The code that it is about."""
    hypotheses: tuple[Hypothesis, ...]
    """What is assumed of the arguments; the claim fails without any one of them."""
    claim: Claim
    """The claim as a formula over the arguments and the result."""
    profile: str
    """The profile whose readings the code was given, but for the changes of the subject."""
    layer: str = "code"
    """What kind of proof: `code` is the model's own text on symbolic values."""
    largest: int | None = None
    """Replication factor beyond which the shapes would cost too much, None if there is no such."""
    shape: tuple[Hypothesis, ...] = ()
    """What is assumed only to keep the number of paths small; the claim holds without it too."""
    finding: str = ""
    """The finding about a document that a refutation shows, "" where none is expected: where a
    document promises what this reading cannot keep."""
    thorough: int | None = None
    """The same where the factor asked for is `THOROUGH`; None if that is no different."""
    tier: str = "gate"
    """`gate` for what every check proves, `full` for what only a whole proof run does."""
    cure: str = ""
    """The profile under which the code keeps the promise on the counterexample, where a refutation
    is expected. One that changes a single reading is cured by its own profile without that."""
    needs: int | None = None
    """Replication factor in which its hypotheses show that they are needed, None for the
    subject's."""

    def __post_init__(self) -> None:
        """Refuse a theorem whose code was given the readings of another profile."""
        given = self.subject.profile
        if given and given != self.profile:
            raise ValueError(f"{self.name}: profile {self.profile}, the code was given {given}")

    @property
    def is_any_size(self) -> bool:
        """Return whether it is proved for any number of brokers; refutations are of few."""
        return self.subject.any_size is not None and not self.finding

    def within_bounds(self) -> "Theorem":
        """Return the same claim about as many brokers as the shapes have."""
        return replace(self, subject=replace(self.subject, any_size=None))

    @property
    def shown_in(self) -> int:
        """Return the replication factor in which its hypotheses show that they are needed."""
        return self.needs or self.subject.needs

    @property
    def expected(self) -> str:
        """Return what is expected to come of it, `proved` or `refuted`."""
        return "refuted" if self.finding else "proved"

    @property
    def scenario(self) -> str:
        """Return the scenario that the counterexample is, by area and name; "" where none is."""
        told = self.expected == "refuted" and self.subject.tell is not None
        return f"counterexamples/{self.name}" if told else ""

    @property
    def assumptions(self) -> tuple[Hypothesis, ...]:
        """Return all that is assumed, needed or not."""
        return (*self.hypotheses, *self.shape)

    def bound(self, replication_factor: int) -> str:
        """Return in words what is bounded when proved up to `replication_factor`."""
        if self.is_any_size:
            return "any number of brokers; all integers unbounded"
        words = self.subject.bounded.format(self._cap(replication_factor))
        shapes = self.shapes(replication_factor)
        lengths = [each.length for shape in shapes for each in shape.values() if each.length]
        lists = f"; lists of up to {max(lengths)}" if lengths else ""
        but = (
            " but the brokers' numbers, at which no function looks" if self.subject.numbered else ""
        )
        return f"{words}{lists}; all integers unbounded{but}"

    def shapes(self, replication_factor: int) -> tuple[Shape, ...]:
        """Return the shapes to look at, smallest first."""
        if self.is_any_size and self.subject.any_size is not None:
            return (self.subject.any_size(),)
        return tuple(self.subject.shapes(self._cap(replication_factor)))

    def _cap(self, replication_factor: int) -> int:
        if replication_factor >= THOROUGH and self.thorough is not None:
            return min(replication_factor, self.thorough)
        return min(replication_factor, self.largest or replication_factor)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of rule that a reviewer may bring in place of the model's."""

    name: str
    """What it is, in a word."""
    parameters: tuple[str, ...]
    """The names by which it is recognised, which are those of its arguments."""
    held: Mapping[str, str]
    """The subject whose theorems it is held against, by profile; "" stands for every profile."""
    more: str = ""
    """One more parameter that it may take, "" where there is none."""
    shapes_with_more: Callable[[int], Iterator[Shape]] | None = None
    """The shapes where it takes that."""
    preconditions: tuple[Hypothesis, ...] = ()
    """What the documents' own rule needs of its arguments. A reviewer's rule is held against the
    theorems without them, but for those that he accepts."""
    surroundings: tuple[Hypothesis, ...] = ()
    """What the code needs that the rule is a part of: always assumed, and always told."""
    answers_list: bool = True
    """Whether it answers replicas, in any collection."""
    evaluate: Callable[[Values, Callable[..., Any]], Any] | None = None
    """Runs what it is a part of, with the rule in its place; None where it stands alone."""


@dataclass(frozen=True, slots=True)
class StatedClaim:
    """A claim on its way to a theorem."""

    claim: Claim
    words: str = ""
    """The statement, "" where the docstring of the claim says it."""
    hypotheses: tuple[Hypothesis, ...] = ()
    shape: tuple[Hypothesis, ...] = ()


Claimed: TypeAlias = Claim | StatedClaim
Terming: TypeAlias = Callable[[Claimed], StatedClaim]


def _note(claim: Claimed, **more: Any) -> StatedClaim:
    return replace(claim if isinstance(claim, StatedClaim) else StatedClaim(claim), **more)


def given(*hypotheses: Hypothesis) -> Terming:
    """Say what a claim needs."""
    return lambda claim: _note(claim, hypotheses=hypotheses)


def shaped(*hypotheses: Hypothesis) -> Terming:
    """Say what is assumed of a claim only to keep the number of paths small."""
    return lambda claim: _note(claim, shape=hypotheses)


def says(words: str) -> Terming:
    """Say what a claim claims, where that is not its docstring."""
    return lambda claim: _note(claim, words=words)


class Claims(list[Theorem]):
    """The theorems of a file, in the order in which they are claimed.

    A claim is a function with its statement as the first paragraph of its docstring, and below
    `about` what it needs. Of several theorems with one claim the lowest comes first.
    """

    def __init__(self, profile: str = "", **common: Any) -> None:
        """Take what they have in common; the profile is that of subjects without readings."""
        super().__init__()
        self._common = {"profile": profile, **common}

    def about(
        self, subject: Subject, name: str, clause: str, **more: Any
    ) -> Callable[[Claimed], Claim]:
        """Claim something of a subject."""
        own = {"profile": subject.profile} if subject.profile else {}

        def state(claim: Claimed) -> Claim:
            terms = _note(claim)
            words = terms.words or _read_statement(terms.claim)
            assumed = {"shape": terms.shape} if terms.shape else {}
            made = {**self._common, **own, **assumed, **more}
            self.append(
                Theorem(name, clause, words, subject, terms.hypotheses, terms.claim, **made)
            )
            return terms.claim

        return state


def _read_statement(claim: Claim) -> str:
    return " ".join((claim.__doc__ or "").partition("\n\n")[0].split())


class Unread:
    """Stands for an argument that the code under test must not look at.

    What is proved with it holds for every value of that argument. Any use ends the proof as
    unknown.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: object) -> NoReturn:
        from reassure_proofs.engine.symex import GaveUp

        raise GaveUp(f"the code under test reads {self._name!r}, of which nothing was assumed")

    __iter__ = __len__ = __getitem__ = __contains__ = __add__ = __radd__ = __bool__ = _refuse
    __hash__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = _refuse


def describe(value: object) -> str:
    """Return a value as it is written in a counterexample.

    Sequences stand in square brackets; of a record, what is not as by default is told in words.

    >>> describe((1, 2)), describe(None)
    ('[1, 2]', 'nothing')
    """
    if isinstance(value, tuple | list):
        return "[" + ", ".join(describe(part) for part in value) + "]"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(describe(part) for part in value)) + "}"
    if isinstance(value, Enum):
        return _spaced(value.name)
    if is_dataclass(value) and not isinstance(value, type):
        told = ((item, getattr(value, item.name)) for item in fields(value))
        parts = (f"{_spaced(i.name)} {describe(v)}" for i, v in told if not _is_default(i, v))
        return f"{_spaced(type(value).__name__)} ({', '.join(parts)})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "nothing" if value is None else str(value)


def _is_default(item: "Field[Any]", value: object) -> bool:
    return item.default is not MISSING and item.default == value


def _spaced(name: str) -> str:
    """Return the name of a record or a field in words.

    >>> _spaced("LeaderAndIsr"), _spaced("leader_epoch"), _spaced("NON_EXISTENT")
    ('leader and isr', 'leader epoch', 'non existent')
    """
    words = name if name.isupper() else re.sub(r"(?<!^)(?=[A-Z])", "_", name)
    return words.replace("_", " ").lower()


def describe_values(values: Values) -> str:
    """Return all arguments in one line.

    >>> describe_values({"assigned": (1, 2), "top": 1})
    'assigned=[1, 2] top=1'
    """
    return " ".join(f"{name}={describe(value)}" for name, value in values.items())
