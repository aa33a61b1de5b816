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
        self._file: Path | None = None
        # Java refuses an archive made of other files, or of folders.
        if all(entry.is_file() for entry in class_path):
            stamps = [(str(jar), jar.stat().st_size) for jar in (java.path, *class_path)]
            version = ".".join(map(str, java.version))
            name = f"spark-java-{version}-{crc32(repr(stamps).encode()):08x}.jsa"
            self._file = _find_cache() / name
        self._made = None if self._file is None else Path(f"{self._file}.{os.getpid()}")
        self._makes = self._file is not None and not self._file.is_file() and self._can_write()

    def _can_write(self) -> bool:
        assert self._file is not None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return False
        return os.access(self._file.parent, os.W_OK)

    @property
    def makes(self) -> bool:
        """Whether Java writes the archive as it ends."""
        return self._makes

    def list_options(self) -> list[str]:
        """Return what to tell Java at its start."""
        # What Java has to say of archives concerns nobody: without one it is slower, no more.
        quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=off"]
        if self._makes:
            return [f"-XX:ArchiveClassesAtExit={self._made}", *quiet]
        if self._file is not None and self._file.is_file():
            return [f"-XX:SharedArchiveFile={self._file}", *quiet]
        return []

    def keep(self, code: int) -> None:
        """Put the archive in its place once Java has ended; `code` is what it ended with."""
        if self._makes and self._made is not None and self._made.is_file():
            assert self._file is not None
            if code in (0, 143):
                self._made.replace(self._file)
            else:
                self._made.unlink()


def _find_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "reassure"
