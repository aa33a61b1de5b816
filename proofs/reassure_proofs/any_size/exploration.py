"""One theorem for any number of brokers: all paths, the certificate, and what plain Python says.

The paths, the questions at their ends and the certificate are those of the bounded engine. What
differs is how plain Python is asked, as no value of a path says who a broker is:

* of every path one input is built of the sizes that the solver finds, and so are inputs at random;
  what plain Python returns for each has to *fit* one of the paths: the sizes of all that was given
  and returned have to be possible there;
* a violation is built of its sizes as well, from the fewest brokers on and in different orders, and
  refutes only if plain Python shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import count
from random import Random
from typing import Any, Final

import z3

from reassure_proofs.any_size.broker_numbers import NumberColumn, Numbers
from reassure_proofs.any_size.contracts import Part
from reassure_proofs.any_size.opaque_brokers import (
    Broker,
    Brokers,
    Segment,
    find_negative,
    find_nobody,
    join_masks,
    make_broker,
    make_list,
    make_set,
)
from reassure_proofs.any_size.regions import Regions
from reassure_proofs.any_size.twins import TwinMaker
from reassure_proofs.engine.results import ProofGoal, Refutation
from reassure_proofs.engine.shape_exploration import (
    ShapeExploration,
    formula_of,
    is_broken,
    tell_outcome,
)
from reassure_proofs.engine.statement import Parameter, Values, describe_values
from reassure_proofs.engine.symbols import SBool, SInt
from reassure_proofs.engine.symex import (
    EngineFault,
    GaveUp,
    Path,
    PathExplorer,
    Term,
    negation,
)
from reassure_spec.znodes import NO_LEADER

_BROKERS_MAX: Final = 16
"""A violation is sought with up to so many brokers."""
_ORDERS: Final = 12
"""So many orders of the lists are tried with the sizes that were found."""
_POOL: Final = 7
"""So many brokers has an input that is made at random, at most."""
_RANDOM: Final = 12
"""So many inputs at random have to fit."""


@dataclass(frozen=True, slots=True)
class _End:
    """What stood at the end of a path."""

    path: Path[tuple[object, dict[str, Term]]]
    regions: Regions


@dataclass(slots=True)
class AnySizeExploration(ShapeExploration):
    """The working state where brokers are of any number."""

    regions: Regions = field(init=False)
    base: Regions = field(init=False)
    """The diagram of the arguments."""
    ends: list[_End] = field(default_factory=list)
    _solvers: dict[int, Any] = field(default_factory=dict)
    """By end: what knows all that is true of its path."""
    _twin: Any = field(init=False)
    _claims: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.engine = PathExplorer(limits=self.limits)
        given: list[Term] = []
        self.regions = Regions(self.engine, given.append)
        find_nobody(self.regions)
        self.values = values = dict[str, Any]()
        for name, each in self.shape.items():
            values[name] = self.make_symbols(name, each)
        follow = TwinMaker().follow
        self._twin = follow(self.function)
        self._claims = {goal.name: follow(goal.claim) for goal in self.goals}
        assumed = [formula_of(follow(item.holds)(self.values)) for item in self.hypotheses]
        self.extra = {
            goal.name: [formula_of(follow(each.holds)(self.values)) for each in goal.hypotheses]
            for goal in self.goals
        }
        self._learn([*given, *assumed])
        self.assumed = [*given, *assumed]
        self.base = self.regions.save()

    def make_symbols(self, name: str, parameter: Parameter) -> Any:
        """Return what stands for an argument."""
        if parameter.kind == "list":
            return make_list(self.regions, name)
        if parameter.kind == "set":
            return make_set(self.regions, self.regions.make_atom(name))
        if parameter.kind == "column":
            return NumberColumn(name, self.values[parameter.word])
        if parameter.kind == "broker":
            return make_broker(self.regions, name)
        if parameter.kind == "natural":
            raise GaveUp("a number that is not negative")
        return ShapeExploration.make_symbols(self, name, parameter)

    def _learn(self, assumed: list[Term]) -> None:
        """Note which regions the hypotheses leave empty, and which lists they keep distinct."""
        solver = z3.Solver()
        solver.add(*assumed)
        regions = self.regions
        for mask, size in regions.parts:
            if solver.check(size > 0) == z3.unsat:
                regions.empty |= mask
        for name, value in self.values.items():
            if isinstance(value, Brokers) and not value.is_set:
                twice = negation(formula_of(value.is_distinct()))
                if solver.check(twice) == z3.unsat:
                    whole = Segment(name, value.mask, regions.size(value.mask), distinct=True)
                    value.segments = (whole,)
        for value in self.values.values():
            if isinstance(value, NumberColumn) and not value.brokers.segments[0].distinct:
                raise GaveUp("a list that may have somebody twice is paired with numbers")

    def run(self) -> None:
        """Take every path, then hold plain runs against them."""
        ShapeExploration.run(self)
        fitting = None
        for place, arguments in enumerate([*self.witnesses, *self._inputs(_RANDOM)]):
            answer = self.call(arguments)
            # First its own path, or that of the input before: most inputs at random are refused.
            likely = self.ends[place] if place < len(self.ends) else fitting
            ends = sorted(self.ends, key=lambda end: end is not likely)
            fitting = next((end for end in ends if self.fits(end, arguments, *answer)), None)
            if fitting is None:
                raise EngineFault(
                    f"{describe_values(arguments)} gives {tell_outcome(*answer)}, which fits no "
                    "path that was explored for any number of brokers"
                )

    def body(self) -> tuple[object, dict[str, Term]]:
        """Run the twin on brokers of any number; return its result and the claims about it."""
        self.regions.restore(self.base)
        self.regions.emit = self.engine.assume
        result = self._twin(self.values)
        return result, {
            n: formula_of(claim(self.values, result)) for n, claim in self._claims.items()
        }

    def _replay_witness(self, path: Path[tuple[object, dict[str, Term]]]) -> None:
        self.ends.append(_End(path, self.regions.save()))
        self.witnesses.append(make_plain(self.regions, path.witness, self.values, None))

    def minimise(self, goal: ProofGoal) -> Refutation:
        """Return a violation of the goal by few brokers, which plain Python shows.

        Raises GaveUp where it shows none.
        """
        chance = Random(0)
        solvers = [(end, self._solve_violation(end, goal)) for end in self.ends]
        for many in range(1, _BROKERS_MAX + 1):
            for end, solver in solvers:
                few = [size for _, size in _occupied(end.regions)]
                if solver.check(z3.Sum(few) <= many) != z3.sat:
                    continue
                for order in [None, *([chance] * _ORDERS)]:
                    arguments = make_plain(end.regions, solver.model(), self.values, order)
                    result, error = self.call(arguments)
                    assumed = (*self.hypotheses, *goal.hypotheses)
                    if is_broken(goal, arguments, result, error) and all(
                        item.holds(arguments) for item in assumed
                    ):
                        return Refutation(arguments, tell_outcome(result, error))
        raise GaveUp(f"{goal.name} may fail, but no plain run of up to {_BROKERS_MAX} shows it")

    def _solve_violation(self, end: _End, goal: ProofGoal) -> Any:
        path = end.path
        solver = z3.Solver()
        solver.set("timeout", self.limits.query_milliseconds)
        solver.add(*self.assumed, *self.extra[goal.name], *self.engine.laws, path.condition)
        if path.result is not None:
            solver.add(negation(path.result[1][goal.name]))
        return solver

    def fits(
        self, end: _End, arguments: Values, result: object, error: Exception | None = None
    ) -> bool:
        """Return whether a plain run is possible on a path, by all sizes and numbers."""
        given: list[Term] = []
        regions = end.regions.save()
        regions.emit = given.append
        match = _Match([], [(find_nobody(regions).mask, frozenset({NO_LEADER}))], [])
        match.add(dict(self.values), dict(arguments))
        if error is not None or end.path.result is None:
            match.possible &= type(error) is type(end.path.error)
        else:
            match.add(end.path.result[0], result)
        if not match.possible:
            return False
        if "negative" in regions.known:
            everybody = {broker for _, members in match.pairs for broker in members}
            negative = frozenset(broker for broker in everybody if broker < 0)
            match.pairs.append((find_negative(regions), negative))
        terms = match.terms + list(match.find_sizes(regions))
        if not match.possible:
            return False
        solver = self._solvers.get(id(end))
        if solver is None:
            solver = self._solvers[id(end)] = z3.Solver()
            solver.add(*self.assumed, *self.engine.laws, end.path.condition)
        solver.push()
        solver.add(*given, *terms)
        found = solver.check()
        solver.pop()
        return bool(found == z3.sat)

    def _inputs(self, many: int) -> Iterator[dict[str, Any]]:
        """Yield plain inputs that satisfy the hypotheses, alike in every run."""
        chance, found = Random(0), 0
        for _ in range(40 * many):
            arguments = self._draw(chance)
            if self._is_assumed(arguments):
                yield arguments
                found += 1
            if found == many:
                return

    def _draw(self, chance: Random) -> dict[str, Any]:
        brokers = list(range(1, chance.randint(1, _POOL) + 1))
        drawn: dict[str, Any] = {}
        pool: list[int] = brokers
        for name, parameter in self.shape.items():
            if parameter.kind in ("list", "set"):
                among = chance.choice([brokers, pool or brokers])
                some = chance.sample(among, chance.randint(0, len(among)))
                if chance.random() < 0.1 and some:
                    some.append(chance.choice([NO_LEADER, some[0]]))
                drawn[name] = frozenset(some) if parameter.kind == "set" else tuple(some)
                pool = some
            elif parameter.kind == "broker":
                drawn[name] = chance.choice([*(pool or brokers), *(pool or brokers), NO_LEADER])
            elif parameter.kind == "truth":
                drawn[name] = chance.random() < 0.5
            elif parameter.kind == "word":
                drawn[name] = parameter.word
            elif parameter.kind == "column":
                drawn[name] = tuple(chance.randint(0, _POOL) for _ in drawn[parameter.word])
            else:
                drawn[name] = chance.randint(-1, _POOL)
        return drawn


@dataclass(slots=True)
class _Match:
    """What has to be true for a plain value to be what a symbolic one stands for."""

    terms: list[Term]
    pairs: list[tuple[int, frozenset[int]]]
    """Sets, and who is in them."""
    columns: list[tuple[NumberColumn, dict[int, int]]]
    """Columns, and the number that each broker has."""
    possible: bool = True

    def add(self, value: Any, plain: Any) -> None:
        """Match a value with a plain one."""
        if plain is None:
            self.possible &= value is None
        elif isinstance(value, Part | Numbers):
            raise GaveUp("the code returns a list of something else than brokers")
        elif isinstance(value, Broker):
            self.pairs.append((value.mask, frozenset({plain})))
        elif isinstance(value, Brokers):
            self.pairs.append((value.mask, frozenset(plain)))
            if not value.is_set:
                self.terms.append(value.count().term == len(plain))
        elif isinstance(value, SInt | SBool):
            self.terms.append(value.term == plain)
        elif isinstance(value, dict):
            for name, part in value.items():
                if isinstance(part, NumberColumn):
                    listed = next(n for n, each in value.items() if each is part.brokers)
                    numbers = dict(zip(plain[listed], plain[name], strict=True))
                    self.columns.append((part, numbers))
                else:
                    self.add(part, plain[name])
        elif isinstance(value, tuple) and isinstance(plain, tuple) and len(value) == len(plain):
            for part, other in zip(value, plain, strict=True):
                self.add(part, other)
        elif is_dataclass(value) and type(value) is type(plain):
            for each in fields(value):
                self.add(getattr(value, each.name), getattr(plain, each.name))
        else:
            # Text says nothing, as twins make none.
            self.possible &= isinstance(value, str) or value == plain

    def find_sizes(self, regions: Regions) -> Iterator[Term]:
        """Yield the size of every region that the sets make."""
        everybody = frozenset(broker for _, members in self.pairs for broker in members)
        cells = [(-1, everybody)]
        for mask, members in self.pairs:
            cells = [
                cell
                for here, left in cells
                for cell in ((here & mask, left & members), (here & ~mask, left - members))
                if regions.clear(cell[0])
            ]
        somewhere = join_masks(mask for mask, _ in self.pairs)
        # Those that are empty are so together, which divides the diagram less.
        nobody = join_masks(mask for mask, members in cells if not members) & somewhere
        for mask, members in [(nobody, frozenset[int]()), *cells]:
            if regions.clear(mask & somewhere) and (members or mask == nobody):
                yield regions.size(mask).term == len(members)
        self.possible &= sum(len(members) for _, members in cells) == len(everybody)
        for column, numbers in self.columns:
            for bound, reaching in regions.known.get(("column", column.name), ()):
                for mask, members in cells:
                    reach = [
                        z3.If(numbers[each] >= bound.term, 1, 0)
                        for each in members
                        if each in numbers
                    ]
                    yield regions.size(mask & reaching).term == z3.Sum([z3.IntVal(0), *reach])


def _occupied(regions: Regions) -> list[tuple[int, Term]]:
    """Return one way of being in the atoms for each part of the diagram, with its size."""
    found = []
    for mask, size in regions.parts:
        left = regions.clear(mask)
        row = left & -left
        # The first bit is the region that is in no atom at all.
        if row > 1:
            found.append((row, size))
    return found


def make_plain(
    regions: Regions, model: Term, values: Values, chance: Random | None
) -> dict[str, Any]:
    """Return plain arguments with the sizes of a model; in the order that it has, or any other."""
    numbers, others, nobody = count(1), count(NO_LEADER - 1, -1), find_nobody(regions).mask
    negative = find_negative(regions) if "negative" in regions.known else 0
    members = [
        (NO_LEADER if row & nobody else next(others if row & negative else numbers), row)
        for row, size in _occupied(regions)
        for _ in range(model.eval(size, model_completion=True).as_long())
    ]

    def make(value: Any) -> Any:
        if isinstance(value, SInt | SBool):
            found = model.eval(value.term, model_completion=True)
            return found.as_long() if isinstance(value, SInt) else z3.is_true(found)
        if isinstance(value, NumberColumn):
            rows = dict(members)
            listed = next(plain[name] for name, each in values.items() if each is value.brokers)
            return tuple(_find_number(regions, model, value, rows[broker]) for broker in listed)
        if not isinstance(value, Broker | Brokers):
            return value
        inside = [(broker, row) for broker, row in members if row & value.mask]
        if isinstance(value, Broker):
            return inside[0][0]
        if value.is_set:
            return frozenset(broker for broker, _ in inside)
        (whole,) = value.segments
        fronts = [(a, f) for origin, a, f in regions.fronts if origin == whole.origin]
        if chance is not None:
            chance.shuffle(inside)
        else:
            inside.sort(key=lambda each: [bool(each[1] & a & ~f) for a, f in fronts])
        length = model.eval(whole.length.term, model_completion=True).as_long()
        listed = [broker for broker, _ in inside]
        return tuple(listed + listed[-1:] * (length - len(listed)))

    plain: dict[str, Any] = {}
    for name, value in values.items():
        plain[name] = make(value)
    return plain


def _find_number(regions: Regions, model: Term, column: NumberColumn, row: int) -> int:
    """Return a number that reaches exactly the bounds that somebody in a region has reached."""
    bounds = [
        (model.eval(bound.term, model_completion=True).as_long(), bool(row & mask))
        for bound, mask in regions.known.get(("column", column.name), ())
    ]
    reached = [bound for bound, reaches in bounds if reaches]
    return max(reached) if reached else min((bound for bound, _ in bounds), default=1) - 1
