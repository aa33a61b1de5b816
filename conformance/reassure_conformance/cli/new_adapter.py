"""The verb `new-adapter`: a skeleton to begin with."""

from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option


@click.command("new-adapter")
@click.argument("language", type=click.Choice(["python", "go", "java", "node"]))
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@format_option
def new_adapter(language: str, folder: Path, form: str) -> int:
    """Write the skeleton of an adapter into a new folder: a program that runs.

    It answers the handshake, declares that it can do little, and says where to go on.
    """
    from reassure_conformance.adapter.skeletons import LANGUAGES, write_skeleton
    from reassure_conformance.report.document import HOLDS, Document

    paths = [str(path) for path in write_skeleton(language, folder)]
    following = [line.format(folder=folder) for line in LANGUAGES[language]]
    body = {"language": language, "files": paths, "next": following}
    document = Document("new-adapter", HOLDS, None, {"files": len(paths)}, body=body)
    lines = [f"wrote {path}" for path in paths]
    lines += ["It runs; what it does not do yet, this says:", *(f"  {each}" for each in following)]
    return emit(document, form, lambda: "\n".join(lines))
