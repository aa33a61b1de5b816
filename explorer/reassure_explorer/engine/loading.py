"""Anybody's model: found by the name of the function that makes it, and blamed for its mistakes.

`package.module:function` is imported, from the current directory as well; `./file.py:function` is
read from a file. The function is called without arguments and returns a `Model`.
"""

import importlib
import sys
import sysconfig
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from reassure_explorer.engine.interface import Model
from reassure_explorer.engine.origins import take_stock
from reassure_spec.errors import BadConfiguration, BadData, BadUsage

_LIBRARY: Final = sysconfig.get_path("stdlib")


class BadReference(BadUsage):
    """A text that names no function."""


class NoModel(BadConfiguration):
    """A module, file or function that is not there."""


class BadModel(BadData):
    """What was named is no model, or one that cannot be explored."""


def load_model(reference: str) -> Model:
    """Return the model that a function makes. Raises BadReference, NoModel, BadModel."""
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise BadReference(
            f"{reference!r} names no function; write package.module:function, or ./file.py:function"
        )
    if place.endswith(".py"):
        module = _read_file(Path(place))
    else:
        module = _import(place)
    make = getattr(module, name, None)
    if make is None:
        own = [
            n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        ]
        raise NoModel(f"{place} has no function {name!r}; it has {', '.join(own) or 'none'}")
    if not callable(make):
        raise BadModel(
            f"{reference} is no function but {make!r:.60}; name one that returns a Model"
        )
    try:
        model = make()
    except Exception as error:
        raise BadModel(_describe(reference, error)) from error
    if not isinstance(model, Model):
        raise BadModel(
            f"{reference} returned {model!r:.60}; it must return a reassure_explorer Model"
        )
    return model


def _read_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NoModel(f"there is no file {path}; name one, or a module as package.module:function")
    sys.path.insert(0, str(path.absolute().parent))
    spec = spec_from_file_location(f"explored_{path.stem}", path)
    assert spec is not None and spec.loader is not None, "files that end in .py have a loader"
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadModel(_describe(str(path), error)) from error
    return module


def _import(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise BadModel(_describe(name, error)) from error
        raise NoModel(
            f"there is no module {error.name!r}, neither here nor installed; name one, or a file "
            "as ./file.py:function"
        ) from None
    except Exception as error:
        raise BadModel(_describe(name, error)) from error


def _describe(what: str, error: BaseException) -> str:
    """Return what went wrong, and where: the last place in code of the user's own."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{f.filename}:{f.lineno}" for f in frames if not _is_foreign(f.filename)]
    if isinstance(error, SyntaxError):
        places.append(f"{error.filename}:{error.lineno}")
    where = f", at {places[-1]}" if places else ""
    return f"{what}: {type(error).__name__}: {error}{where}. Mend it there"


def _is_foreign(filename: str) -> bool:
    """Whether code belongs to this package or to Python, or was generated; nobody mends it."""
    own = Path(filename).parent == Path(__file__).parent
    library = filename.startswith(_LIBRARY) and "site-packages" not in filename
    return own or library or filename.startswith("<")


def blame(reference: str, model: Model, error: Exception) -> BadModel | None:
    """Return the error that says where the model went wrong; None where it was not the model."""
    own = {function.__code__.co_filename for _, function in take_stock(model).functions}
    frames: list[Any] = traceback.extract_tb(error.__traceback__)
    if not any(frame.filename in own for frame in frames):
        return None
    return BadModel(_describe(reference, error))
