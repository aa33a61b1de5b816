"""The page of bugs that an audit names by their shape, from the data that it goes by."""

from collections.abc import Iterator

from pieces import make_page

from reassure_spec.bugs import Bug, load_bugs


def render_bugs() -> str:
    """Return the page: what each bug is, in which releases, what is at risk and what to do."""
    lines = [
        "`reassure audit` compares the first violation of an",
        "[incident](../audit.md#incidents) with these shapes, and names each bug that the release",
        "of the cluster may have. Ids like `zk-2` are [findings](../findings.md) that are in no",
        "tracker.",
        "",
    ]
    for bug in load_bugs():
        lines += [*_describe(bug), ""]
    return make_page("Bugs of Apache Kafka, by their shape in the log", *lines[:-1])


def _describe(bug: Bug) -> Iterator[str]:
    yield f"## {bug.id}"
    yield ""
    yield f"{bug.title[0].upper()}{bug.title[1:]}."
    yield ""
    yield f"- Releases: {bug.releases}"
    yield f"- Profiles: {', '.join(bug.profiles)}"
    yield f"- Shape: {', '.join(f'`{each}`' for each in bug.clauses)}{_describe_shape(bug)}"
    yield f"- At risk: {bug.risk}"
    yield f"- Do: {bug.remedy}"
    if bug.findings:
        yield f"- Findings: {', '.join(bug.findings)}"
    yield f"- Source: {bug.source}"


def _describe_shape(bug: Bug) -> str:
    named = (("author", bug.author), ("content after", bug.after), ("reason", bug.reason))
    return "".join(f"; {name} matches `{what}`" for name, what in named if what)
