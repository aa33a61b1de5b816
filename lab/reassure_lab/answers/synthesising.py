"""What the verb `synth` answers."""

import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, Document
from reassure_spec.profiles import DEFAULT_PROFILE
from reassure_spec.protocols import import_parts

_SYNTHETIC: Final = import_parts("reassure_lab", "synthetic")[DEFAULT_PROFILE]


def synth_document(directory: Path, *sizes: float) -> Document:
    """Write an archive of this `Size`; answer what was planted. Raises BadUsage, OSError."""
    start = time.perf_counter()
    size = _SYNTHETIC.Size(*sizes)
    truth = _SYNTHETIC.write_archive(directory, size)
    counts = {
        "transactions": size.transactions,
        "partitions": size.partitions,
        "faults": size.faults,
    }
    planted = Counter(fault["clause"] for fault in truth["planted"])
    told = {name: truth[name] for name in ("planted", "unplanted")}
    body = {"directory": str(directory), **told, "by_clause": dict(sorted(planted.items()))}
    seconds = time.perf_counter() - start
    return Document("synth", HOLDS, seconds, counts, size.seed, truth["profile"], body=body)


def render_synth(document: Document, form: str) -> str:
    """Return what was planted, by clause."""
    rows: list[list[Any]] = [list(each) for each in document.body["by_clause"].items()]
    table = display.render_table("Planted", ["clause", "times"], rows, form)
    missing = len(document.body["unplanted"])
    if missing:
        asked = document.counts["faults"]
        table += (
            f"\n{missing} of the {asked} faults found no place: use more --transactions, or fewer "
            "--faults\n"
        )
    where = f"{document.body['directory']}/{_SYNTHETIC.TRUTH}"
    return f"{table}\n{document.counts['transactions']} transactions; {where} says where"
