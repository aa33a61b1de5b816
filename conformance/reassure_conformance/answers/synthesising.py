"""What the verb `synth` answers."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

from reassure_conformance.report import display
from reassure_conformance.report.document import HOLDS, Document
from reassure_pipeline.synthetic import TRUTH, Size, write_archive


def synth_document(
    directory: Path, transactions: int, partitions: int, faults: int, seed: int
) -> Document:
    """Write an archive; answer what was planted. Raises BadUsage, OSError."""
    start = time.perf_counter()
    truth = write_archive(directory, Size(transactions, partitions, faults, seed))
    counts = {"transactions": transactions, "partitions": partitions, "faults": faults}
    told = {name: truth[name] for name in ("planted", "unplanted")}
    body = {"directory": str(directory), **told}
    seconds = time.perf_counter() - start
    return Document("synth", HOLDS, seconds, counts, seed, truth["profile"], body=body)


def render_synth(document: Document, form: str) -> str:
    """Return what was planted, by clause."""
    planted = Counter(fault["clause"] for fault in document.body["planted"])
    rows: list[list[Any]] = [[clause, times] for clause, times in sorted(planted.items())]
    table = display.render_table("Planted", ["clause", "times"], rows, form)
    missing = len(document.body["unplanted"])
    if missing:
        asked = document.counts["faults"]
        table += (
            f"\n{missing} of the {asked} faults asked for found no place: ask for more "
            "transactions, or for fewer faults\n"
        )
    where = f"{document.body['directory']}/{TRUTH}"
    return f"{table}\n{document.counts['transactions']} transactions; {where} says where"
