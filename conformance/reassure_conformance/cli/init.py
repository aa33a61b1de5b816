"""The verb `init`: a skeleton to begin with."""

from pathlib import Path

import click

from reassure_conformance.cli.options import emit, format_option


@click.command()
@click.argument("language", type=click.Choice(["python", "go", "java", "node"]))
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@format_option
def init(language: str, folder: Path, form: str) -> int:
    """Write the skeleton of an adapter: a program that runs.

    It is written into a new folder DIR. It answers the handshake, declares few capabilities, and
    has comments that say what to add.
    """
    from reassure_conformance.adapter.skeletons import LANGUAGES, write_skeleton
    from reassure_conformance.report.document import HOLDS, Document

    paths = [str(path) for path in write_skeleton(language, folder)]
    following = [line.format(folder=folder) for line in LANGUAGES[language]]
    body = {"language": language, "files": paths, "next": following}
    document = Document("new-adapter", HOLDS, None, {"files": len(paths)}, body=body)
    lines = [f"wrote {path}" for path in paths]
    lines += ["It runs. To see what is still missing:", *(f"  {each}" for each in following)]
    return emit(document, form, lambda: "\n".join(lines))
