"""The log of a run judged again as the run judged it, with the moments at which it was quiescent.

An audit judges what was written. What is owed, and which mutants of the rules the states kill, can
be said with those moments only; a run keeps them beside its log (`gate.rests`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reassure_conformance.gate.discrimination import SURVIVORS, Score
from reassure_conformance.gate.rests import Rests
from reassure_conformance.report.document import HOLDS, UNKNOWN, VACUOUS, VIOLATED, Document
from reassure_judge.verdicts import (
    NOT_FOLLOWED,
    ClauseVerdict,
    Violation,
    count_broken,
    summarise,
)
from reassure_mutation.score import Scorer
from reassure_spec.clauses import ADVICE
from reassure_spec.readings import get_profile, override_readings
from reassure_zookeeper.txnlog import read_logs


def judge_again(
    document: Document, rests: Rests, logs: Path, *, strict: bool, **options: Any
) -> Document:
    """Return the document of an audit of a run's logs with what its quiescent moments show.

    The options are those of `Rests.judge`, and so are the errors.
    """
    assert document.profile is not None
    readings = override_readings(get_profile(document.profile), document.readings)
    judge, recorder = rests.judge(read_logs(logs), document.profile, readings, **options)
    found, body = judge.violations, dict(document.body)
    fresh = _list_fresh(found, [*body["violations"], *body["not_followed"]])
    archive = body["archives"][0]["path"]
    added: dict[str, list[Any]] = {"violations": [], "not_followed": []}
    for each in fresh:
        name = "violations" if strict or each.binds() else "not_followed"
        added[name].append({**each.as_dict(), "archive": archive})
    body |= {name: [*body[name], *records] for name, records in added.items()}
    counts = {name: document.counts[name] + len(records) for name, records in added.items()}
    told = summarise(
        document.profile,
        judge.exercised,
        count_broken(found),
        undecided=judge.undecided,
        settled=True,
        strict=strict,
    )
    clauses = tuple(_join(*pair) for pair in zip(told, body["clauses"], strict=True))
    score = Score()
    if not counts["violations"]:
        scorer = Scorer(document.profile, readings, live=False)
        score = Score.of(scorer, recorder.take_situations(), rests.capabilities)
    directory = rests.path.parent
    body |= score.as_body(directory if (directory / SURVIVORS).is_dir() else None)
    body["clauses"] = [each.as_dict() for each in score.mark(clauses)]
    counts |= {"rests": len(rests.moments), **score.counts()}
    return replace(
        document,
        verdict=_conclude(body, clauses, violated=bool(counts["violations"]), strict=strict),
        counts={**document.counts, **counts},
        body=body,
    )


def _list_fresh(found: Iterable[Violation], listed: Sequence[Any]) -> list[Violation]:
    """Return those of the violations that are not among the records of an audit."""
    names = "clause", "zxid", "path"
    known = {tuple(each[name] for name in names) for each in listed}
    told = ((each, each.as_dict()) for each in found)
    return [v for v, record in told if tuple(record[name] for name in names) not in known]


def _join(told: ClauseVerdict, listed: Any) -> ClauseVerdict:
    """Return the verdict with the moments, or what the log shows to be broken by itself."""
    by_log = ClauseVerdict(**listed)
    return by_log if by_log.verdict in (VIOLATED, NOT_FOLLOWED) else told


def _conclude(
    body: dict[str, Any], clauses: Sequence[ClauseVerdict], *, violated: bool, strict: bool
) -> str:
    """Return the verdict on the whole, as an audit comes to it."""
    if violated:
        return VIOLATED
    binding = (each for each in clauses if strict or each.level not in ADVICE)
    if body["needs"] or any(each.verdict == UNKNOWN for each in binding):
        return UNKNOWN
    return HOLDS if any(each.exercised for each in clauses) else VACUOUS
