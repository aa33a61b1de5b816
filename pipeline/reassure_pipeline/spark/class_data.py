"""Java's class data for Spark, archived once, so that it starts in half the time.

Spark loads some fifteen thousand classes before it does anything. Java can keep them as they are
once loaded, in an archive that belongs to one Java and one list of jars. The first session that
finds no archive makes it as it ends, which takes a while; every later one starts from it.

The archive lies in `reassure` below `XDG_CACHE_HOME` (`~/.cache`) and may be deleted at any time.
Where nothing can be written there, Spark starts as it always did.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from reassure_zookeeper.java import Java

MAKING_LIMIT_S: Final = 600.0
"""How long Java may take to write an archive, which is ten seconds where nothing else runs."""


class ClassData:
    """The archive for one Java and one list of jars, there already or to be made."""

    def __init__(self, java: Java, class_path: Sequence[Path]) -> None:
        self._file = _find_file(java, class_path)
        self._made: Path | None = None
        """What Java writes as it ends, where it does."""
        if self._file is not None and not self._file.is_file() and _can_write(self._file.parent):
            self._made = Path(f"{self._file}.{os.getpid()}")

    @property
    def makes(self) -> bool:
        """Whether Java writes the archive as it ends."""
        return self._made is not None

    def list_options(self) -> list[str]:
        """Return what to tell Java at its start."""
        # Java's warnings about archives are silenced: without one it is slower, no more.
        quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]
        if self._made is not None:
            return [f"-XX:ArchiveClassesAtExit={self._made}", *quiet]
        if self._file is not None and self._file.is_file():
            return [f"-XX:SharedArchiveFile={self._file}", *quiet]
        return []

    def keep(self, code: int) -> None:
        """Put the archive in its place once Java has ended; `code` is what it ended with."""
        if self._file is not None and self._made is not None and self._made.is_file():
            if code in (0, 143):
                self._made.replace(self._file)
            else:
                self._made.unlink()


def _find_file(java: Java, class_path: Sequence[Path]) -> Path | None:
    """Return where the archive is; None for folders, of which Java makes none."""
    if not all(entry.is_file() for entry in class_path):
        return None
    stamps = [(str(jar), jar.stat().st_size) for jar in (java.path, *class_path)]
    version, digest = ".".join(map(str, java.version)), crc32(repr(stamps).encode())
    home = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(home) if home else Path.home() / ".cache") / "reassure"
    return cache / f"spark-java-{version}-{digest:08x}.jsa"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
