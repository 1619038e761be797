"""What a task is, as one hash: the key under which its results are kept. And which versions it depends on."""

from __future__ import annotations

import functools
import platform
import sys
import sysconfig
import types
from typing import Any

import numpy as np

from whosin.errors import InputError

__all__ = ["fingerprint", "versions"]

VERSION = 2
"""Raised when results that are kept change their meaning."""
SAME = ("whosin", "numpy", "scipy", "scikit-learn", "joblib")
"""Packages that have to be of one version everywhere, beside Python itself."""


def fingerprint(*parts: Any) -> str:
    """Return a hash of data, functions and settings, the same in every process, with the versions that compute.

    Functions and classes of one's own count by their byte code, constants, defaults and closures, together with the
    functions, classes and constants of their module that they name; those of installed packages count by their names.
    What a function of one's own fetches in other ways (a file, an attribute of another module) is not seen.

    Raises
    ------
    InputError
        For an object that cannot be pickled.
    """
    try:
        return str(_hasher().hash((VERSION, versions(), parts)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"a journal or cache takes data, functions and estimators that can be pickled, got: {error}"
        ) from error


@functools.cache
def versions() -> dict[str, str]:
    """Return what has to be the same everywhere for the same results: Python up to its minor version, and packages."""
    from importlib import metadata

    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in SAME:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "of unknown version"
    return found


def _hasher() -> Any:
    from joblib.hashing import NumpyHasher

    class Hasher(NumpyHasher):  # type: ignore[misc]
        """The hash of joblib, with code in place of names."""

        def __init__(self) -> None:
            super().__init__(hash_name="sha1")
            self.open: set[int] = set()

        def save(self, obj: Any) -> None:
            """Feed one object to the hash."""
            if isinstance(obj, _CODE) and _own(obj) and id(obj) not in self.open:
                self.open.add(id(obj))
                super().save(_function(obj) if isinstance(obj, types.FunctionType) else _class(obj))
            elif isinstance(obj, _CODE) and _own(obj):
                super().save(("seen", obj.__module__, obj.__qualname__))
            else:
                super().save(obj)

    return Hasher()


def _own(thing: Any) -> bool:
    """Whether this function or class comes from neither an installed package, nor Python, nor whosin."""
    module = getattr(thing, "__module__", None) or "__main__"
    if module.split(".")[0] in ("builtins", "whosin"):
        return False
    code = getattr(thing, "__code__", None)
    place = code.co_filename if code is not None else getattr(sys.modules.get(module), "__file__", None) or ""
    return not any(place.startswith(folder) for folder in _installed())


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {"<frozen"})


def _function(function: types.FunctionType) -> Any:
    names = sorted(set(_names(function.__code__)) & set(function.__globals__))
    named = [(name, function.__globals__[name]) for name in names]
    return (
        "function",
        function.__qualname__,
        _code(function.__code__),
        function.__defaults__,
        function.__kwdefaults__,
        [_content(cell) for cell in function.__closure__ or ()],
        [(name, value) for name, value in named if isinstance(value, (*_CODE, *_CONSTANTS))],
    )


_CODE = (types.FunctionType, type)
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.ndarray)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"


def _names(code: types.CodeType) -> list[str]:
    inner = [item for item in code.co_consts if isinstance(item, types.CodeType)]
    return [*code.co_names, *(name for item in inner for name in _names(item))]


def _code(code: types.CodeType) -> Any:
    constants = [_code(item) if isinstance(item, types.CodeType) else repr(item) for item in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def _class(kind: type) -> Any:
    functions = {
        name: getattr(item, "__func__", getattr(item, "fget", item))
        for name, item in vars(kind).items()
        if isinstance(item, types.FunctionType | classmethod | staticmethod | property)
        or (not name.startswith("__") and isinstance(item, _CONSTANTS))
    }
    bases = [base if _own(base) else f"{base.__module__}.{base.__qualname__}" for base in kind.__bases__]
    return "class", kind.__qualname__, bases, sorted(functions.items())
