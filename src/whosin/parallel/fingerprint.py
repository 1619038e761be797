"""What a task is, as one hash: the key under which its results are kept. And which versions it depends on."""

from __future__ import annotations

import functools
import os
import platform
import sys
import sysconfig
import types
from typing import Any

from whosin.errors import InputError

VERSION = 2
"""Raised when results that are kept change their meaning."""
SAME = ("whosin", "numpy", "scipy", "scikit-learn", "joblib")
"""Packages that have to be of one version everywhere, beside Python itself."""


def fingerprint(*parts: Any) -> str:
    """Return the key of a journal: a hash of data, settings, versions and the caller's own code.

    Change any of them and the work starts anew; installed packages count by name and version, the caller's own
    functions and classes by what they do and by all that they name in their module. What code fetches while it runs (a
    file, an attribute of another module) is not seen.

    Notes
    -----
    "What they do" is byte code, constants, defaults and closures. An object that cannot be pickled counts by its class
    where code names it; one with a method ``journal_key()`` counts by what that returns.

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
        raise InputError(f"a journal needs data, functions and estimators that can be pickled, got: {error}") from error


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

        def __init__(self, seen: frozenset[int] = frozenset()) -> None:
            super().__init__(hash_name="sha1")
            self.open = set(seen)

        def save(self, obj: Any) -> None:
            """Feed one object to the hash."""
            if isinstance(obj, functools._lru_cache_wrapper):
                obj = obj.__wrapped__
            if callable(getattr(type(obj), "journal_key", None)):
                super().save(("key", obj.journal_key()))
            elif isinstance(obj, _CODE) and _own(obj) and id(obj) not in self.open:
                self.open.add(id(obj))
                super().save(_function(obj) if isinstance(obj, types.FunctionType) else _class(obj))
            elif isinstance(obj, _CODE) and _own(obj):
                super().save(("seen", obj.__module__, obj.__qualname__))
            elif isinstance(obj, _Named):
                self.save(self._named(obj.value))
            elif isinstance(obj, frozenset):
                super().save(("frozenset", set(obj)))
            else:
                super().save(obj)

        def _named(self, value: Any) -> Any:
            """What stands for an object that code names: itself, a hash of it, or its class if it has none."""
            if isinstance(value, (*_CODE, functools._lru_cache_wrapper)):
                return value
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            if id(value) in self.open:
                return "seen", kind
            try:
                return kind, Hasher(frozenset(self.open | {id(value)})).hash(value)
            except Exception:
                return "not hashed", kind

    return Hasher()


class _Named:
    """Marks an object that code names, whatever it is."""

    def __init__(self, value: Any) -> None:
        self.value = value


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
    """Folders of Python and of packages, also of those that an environment shares with another or with the user."""
    paths = sysconfig.get_paths()
    shared = (folder for folder in sys.path if os.path.basename(folder) in ("site-packages", "dist-packages"))
    return ("<frozen", *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), *shared)


def _function(function: types.FunctionType) -> Any:
    names = sorted(set(_names(function.__code__)) & set(function.__globals__))
    named = [(name, function.__globals__[name]) for name in names]
    named = [(name, _Named(value)) for name, value in named if not isinstance(value, types.ModuleType)]
    return (
        "function",
        function.__qualname__,
        _code(function.__code__),
        function.__defaults__,
        function.__kwdefaults__,
        [_content(cell) for cell in function.__closure__ or ()],
        named,
    )


_CODE = (types.FunctionType, type)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"


def _names(code: types.CodeType) -> list[str]:
    inner = [item for item in code.co_consts if isinstance(item, types.CodeType)]
    return [*code.co_names, *(name for item in inner for name in _names(item))]


def _code(code: types.CodeType) -> Any:
    constants = [_constant(item) for item in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def _constant(item: Any) -> Any:
    """A constant of code; the order of a set differs from process to process."""
    if isinstance(item, types.CodeType):
        return _code(item)
    if isinstance(item, frozenset):
        return "frozenset", sorted(repr(_constant(entry)) for entry in item)
    if isinstance(item, tuple):
        return "tuple", [_constant(entry) for entry in item]
    return repr(item)


def _class(kind: type) -> Any:
    bases = [base if _own(base) else f"{base.__module__}.{base.__qualname__}" for base in kind.__bases__]
    members = [(name, _member(item)) for name, item in sorted(vars(kind).items()) if _counts(name, item)]
    return "class", kind.__qualname__, bases, members


def _counts(name: str, item: Any) -> bool:
    """Whether a member of a class is code or a setting, not its way to be shown or something that Python put there."""
    if name in ("__repr__", "__annotate_func__"):  # the annotations, which Python 3.14 keeps as a function
        return False
    return not name.startswith("__") or isinstance(item, types.FunctionType | classmethod | staticmethod | property)


def _member(item: Any) -> Any:
    for way in ("__func__", "fget", "func"):
        if isinstance(found := getattr(item, way, None), types.FunctionType):
            return found
    return item if isinstance(item, types.FunctionType) else _Named(item)
