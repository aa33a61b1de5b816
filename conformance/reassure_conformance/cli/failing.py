"""What the command line says where a verb comes to no verdict: why, where, and what to do next.

Each cause has an exit code of its own and, with `--format json`, its document: the common head with
the verdict `unknown`, and under `error` the class, the message and whatever the cause knows of the
place (`file`, `offset`, `zxid`, `path`, `line`).
"""

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reassure_conformance.report.cases import describe_death
from reassure_conformance.report.document import error_document
from reassure_conformance.report.qualified import name_repeat
from reassure_conformance.report.spelling import name_kind
from reassure_spec.errors import BadConfiguration, BadData, ReassureError, Unavailable

if TYPE_CHECKING:
    from reassure_conformance.supervise import Lost

NOBODY_READS: Final = 141
"""The exit code where nobody takes what there is to say: that of a broken pipe in a shell."""

_FOREIGN: Final[tuple[tuple[type[BaseException], type[ReassureError]], ...]] = (
    (FileNotFoundError, BadData),
    (IsADirectoryError, BadData),
    (UnicodeDecodeError, BadData),
    (FileExistsError, BadConfiguration),
    (NotADirectoryError, BadConfiguration),
    (PermissionError, BadConfiguration),
    (OSError, Unavailable),
    (MemoryError, Unavailable),
    (SystemExit, Unavailable),
)
"""Whose matter an error that is not of ours is: the first class that fits. All else is ours."""

_EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("numba", "numpy"), "explore"),
    **dict.fromkeys(("cramjam", "crc32c", "hypothesis", "kazoo", "kio", "structlog"), "gate"),
    **dict.fromkeys(("kafka", "prometheus_client"), "lab"),
    **dict.fromkeys(("py4j", "pandas", "pyarrow", "pyspark"), "spark"),
    "deltalake": "tables",
    "z3": "prove",
}
"""By package, the extra of ours that brings it."""

_PLACES: Final = ("file", "filename", "path", "offset", "zxid", "line")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OURS: Final = "reassure_"


def find_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, ReassureError):
        return error.exit_code
    if isinstance(error, ImportError) and not (error.name or "").startswith(_OURS):
        return Unavailable.exit_code
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES):
        return BadConfiguration.exit_code
    bases = (base for kind, base in _FOREIGN if isinstance(error, kind))
    return next(bases, ReassureError).exit_code


def describe_error(error: BaseException) -> str:
    """Return what is wrong, and what to do about it where that is known."""
    if isinstance(error, ImportError):
        missing = (error.name or "").partition(".")[0]
        if missing in _EXTRAS:
            return f"{missing} is not installed: pip install 'reassure[{_EXTRAS[missing]}]'"
        return f"a package cannot be imported ({error}): install it where reassure is installed"
    if isinstance(error, SystemExit):
        return f"no verdict was reached: code that was run called sys.exit({error.code!r})"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}{_advise(error)}"
    return str(error) or type(error).__name__


def _advise(error: OSError) -> str:
    if error.errno in _FULL:
        return "; free some space, or use another directory"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "; change the permissions, or use another directory"
    return ""


def report_error(arguments: Sequence[str], error: BaseException, say: Callable[[str], None]) -> int:
    """Say what went wrong, and return the exit code."""
    code = find_code(error)
    if code != ReassureError.exit_code:
        trace = getattr(error, "trace", "")
        click.echo(f"{trace}reassure: {describe_error(error)}", err=True)
    else:
        if os.environ.get("REASSURE_TRACEBACK"):
            traceback.print_exception(error)
        click.echo(
            f"reassure: internal error: {type(error).__name__}: {error}\n"
            "This is a bug in reassure, not in what it checked. Please report it with the command "
            "line, the seed, and what is printed with REASSURE_TRACEBACK=1 in the environment.",
            err=True,
        )
    say_error(arguments, code, error, say)
    return code


def report_interrupt(
    arguments: Sequence[str], code: int, error: BaseException, say: Callable[[str], None]
) -> None:
    """Say that the verb was interrupted."""
    click.echo("interrupted", err=True)
    say_error(arguments, code, error, say, message="interrupted")


def say_error(
    arguments: Sequence[str],
    code: int,
    error: BaseException,
    say: Callable[[str], None],
    message: str = "",
) -> None:
    """Say the document of an error, where documents are asked for."""
    if not asks_for_json(arguments):
        return
    usage = isinstance(error, click.ClickException)
    said = message or (error.format_message() if usage else describe_error(error))  # type: ignore[attr-defined]
    body: dict[str, Any] = {"class": type(error).__name__, "message": said}
    for name in _PLACES:
        value = getattr(error, name, None)
        if value is not None and not callable(value):
            body["file" if name == "filename" else name] = (
                value if isinstance(value, int) else str(value)
            )
    trace = getattr(error, "trace", "")
    if code == ReassureError.exit_code:
        trace = "".join(traceback.format_exception(error))
    if trace:
        body["traceback"] = trace
    say(error_document(find_verb(arguments), code, body).as_json())


def explain_end(arguments: Sequence[str], code: int, lost: "Lost | None") -> str:
    """Return the text for a verb whose process ended without a verdict, or was interrupted."""
    message = "interrupted" if lost is None else str(lost)
    click.echo(f"{'' if lost is None else lost.trace}reassure: {message}", err=True)
    if lost is not None and lost.story:
        click.echo("\n".join(_describe_loss(lost)), err=True)
    if not asks_for_json(arguments):
        return ""
    body: dict[str, Any] = {
        "class": "Interrupted" if lost is None else "AdapterDied",
        "message": message,
    }
    if lost is not None:
        body |= {"call": lost.call, "traceback": lost.trace, "story": list(lost.story)}
    return error_document(find_verb(arguments), code, body).as_json()


def _describe_loss(lost: "Lost") -> Iterator[str]:
    """Yield the story in which an implementation took the process with it, and how to repeat it."""
    told = {"died_after": lost.story, "directory": lost.directory}
    yield from describe_death(told)
    yield f"Repeat it with: {name_repeat(told)}"


def print_last(text: str, code: int) -> int:
    """Print what a verb has to say, and return the exit code of the process."""
    if not text:
        return code
    encoding = sys.stdout.encoding or "utf-8"
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        forget_output()
        return NOBODY_READS
    except OSError as error:
        forget_output()
        click.echo(f"reassure: standard output: {describe_error(error)}", err=True)
        return find_code(error)
    return code


def forget_output() -> None:
    """Let Python find nothing to complain of when it flushes standard output at its end."""
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for one document, also one that cannot be understood.

    >>> asks_for_json(["run", "--format", "json"]), asks_for_json(["run", "--format=markdown"])
    (True, False)
    """
    forms = [b for a, b in pairwise(arguments) if a == "--format"]
    forms += [a.partition("=")[2] for a in arguments if a.startswith("--format=")]
    return "json" in forms


def find_verb(arguments: Sequence[str]) -> str:
    """Return the verb of a command line as documents name it, "" where there is none.

    A verb of the lab is named without the word `lab`, as it was before there was one.

    >>> find_verb(["spec", "list", "--format", "json"]), find_verb(["lab", "soak", "--seed", "7"])
    ('spec list', 'soak')
    >>> find_verb(["test", "--case=a-move"]), find_verb(["test", "--seed", "7"])
    ('tell', 'run')
    """
    words = [word for word in arguments if not word.startswith("-")]
    words = words[words[:1] == ["lab"] :]
    if words[:1] in (["spec"], ["cluster"]):
        return " ".join(words[:2])
    options = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    return name_kind(words[0], options) if words else ""
