"""Logs behind a URI, as an object store has them: brought to this machine to be judged.

Whatever Arrow reads is named by a URI with its host: `s3://BUCKET/FOLDER`, `gs://`, `hdfs://HOST/`,
and what fsspec reads by `fsspec+NAME://`. The files of each are brought once, and go when the
process ends.
"""

import atexit
import os
import re
from functools import cache
from pathlib import Path
from shutil import copyfileobj, rmtree
from tempfile import mkdtemp
from typing import Any, Final

from reassure_spec.errors import BadUsage
from reassure_zookeeper.errors import LogsMissing
from reassure_zookeeper.txnlog import log_files

_URI: Final = re.compile(r"([a-z][a-z0-9+]+):/+(.+)", re.DOTALL)
_WANTED: Final = re.compile(r"(?i)(log|snapshot)[._-]")
_brought: Final[dict[Path, str]] = {}
"""By folder on this machine: the URI that its files are from."""


def find_uri(path: Path) -> str | None:
    """Return the URI that a path is, which has lost a slash by being one; None for others.

    >>> find_uri(Path("s3://bucket/logs")), find_uri(Path("/var/lib/zookeeper"))
    ('s3://bucket/logs', None)
    """
    found = _URI.fullmatch(str(path))
    return None if found is None else f"{found[1]}://{found[2]}"


def locate(path: Path) -> str:
    """Return what a file or folder is called wherever it is judged: its path, or its URI."""
    for folder in (path, *path.parents):
        if folder in _brought:
            return f"{_brought[folder]}/{path.relative_to(folder)}".removesuffix("/.")
    return find_uri(path) or str(path.resolve())


def list_logs(path: Path) -> list[Path]:
    """List the log files of a path, brought ones too. Raises as `log_files` and `bring`."""
    uri = find_uri(path)
    return log_files(path if uri is None else bring(uri))


@cache
def bring(uri: str) -> Path:
    """Return the folder that has the logs and snapshots behind a URI.

    Raises BadUsage for one that nothing reads, LogsMissing where there are none, and OSError.
    """
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem

    try:
        store, place = FileSystem.from_uri(uri)
    except ArrowInvalid as problem:
        raise BadUsage(f"{uri} cannot be read: {problem}; name s3://BUCKET/FOLDER") from None
    found = _list_files(store, f"{place}/version-2") or _list_files(store, place)
    if not found:
        raise LogsMissing(f"{uri} has no transaction log; name a folder that has files log.ZXID")
    folder = Path(mkdtemp(prefix="reassure-logs-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    _brought[folder] = uri
    for each in found:
        here = folder / each.base_name
        with store.open_input_stream(each.path, compression=None) as source, here.open("wb") as to:
            copyfileobj(source, to)
        os.utime(here, ns=(each.mtime_ns, each.mtime_ns))
    return folder


def _list_files(store: Any, place: str) -> list[Any]:
    from pyarrow.fs import FileSelector

    found = store.get_file_info(FileSelector(place, allow_not_found=True))
    return [each for each in found if each.is_file and _WANTED.match(each.base_name)]
