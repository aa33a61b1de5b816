"""Put the jars of a ZooKeeper server into the wheel, each compared with its sum.

Maven copies them from Maven Central as `pom.xml` says, or they are taken from the folder that
`REASSURE_ZOOKEEPER_JARS` names.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER: Final = "REASSURE_ZOOKEEPER_JARS"
PACKAGE: Final = "reassure_zookeeper_jars"
_LIMIT_SECONDS: Final = 600
_INSTEAD: Final = (
    f"; mend that, or name a folder in {FOLDER} that has the files that SHA256SUMS lists, such as "
    "the jars of PySpark 4.3"
)


class JarsHook(BuildHookInterface[Any]):
    """Adds the jars to a wheel; the build ends with one line where one cannot be had."""

    _copies: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name every jar among the files of the wheel."""
        folder = Path(os.environ.get(FOLDER) or self._copy_by_maven())
        for line in (Path(self.root) / "SHA256SUMS").read_text(encoding="ascii").splitlines():
            expected, name = line.split()
            jar = folder / name
            if not jar.is_file():
                self.app.abort(f"{folder} has no {name}, which SHA256SUMS lists{_INSTEAD}")
            found = hashlib.sha256(jar.read_bytes()).hexdigest()
            if found != expected:
                self.app.abort(
                    f"{jar} has the SHA-256 sum {found}, expected {expected} by SHA256SUMS; "
                    "do not use it: see where it comes from"
                )
            build_data["force_include"][str(jar)] = f"{PACKAGE}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what Maven copied."""
        if self._copies is not None:
            self._copies.cleanup()

    def _copy_by_maven(self) -> str:
        """Copy the jars from Maven Central into a folder of their own, and return it."""
        maven = shutil.which("mvn")
        if maven is None:
            self.app.abort(f"Maven (mvn), which fetches ZooKeeper's jars, is not on PATH{_INSTEAD}")
        self._copies = TemporaryDirectory(prefix=f"{PACKAGE}-")
        command = [str(maven), "--batch-mode", "--quiet", "--file", str(Path(self.root, "pom.xml"))]
        command += ["dependency:copy", f"-DoutputDirectory={self._copies.name}"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            self.app.abort(f"Maven did not end within {_LIMIT_SECONDS} s{_INSTEAD}")
        if done.returncode:
            said = next((s for s in done.stdout.splitlines() if "ERROR" in s), done.stderr.strip())
            self.app.abort(f"Maven could not copy ZooKeeper's jars ({said}){_INSTEAD}")
        return self._copies.name
