"""Exceptions, warnings, and the checks that raise them.

::

    WhosinError
    ├── InputError         (also ValueError)   an argument has a value that makes no sense
    ├── InputTypeError     (also TypeError)    an argument is of the wrong kind
    ├── ImplicationError   (also ValueError)   no theorem leads from this guarantee to that one
    ├── CalibrationError   (also ValueError)   the target cannot be reached
    ├── MissingExtraError  (also ImportError)  an optional dependency is not installed
    └── LedgerError                            a ledger cannot be read or written, or is not what it was
        └── BudgetError                        the release would take the total beyond the budget

    WhosinWarning (UserWarning)
    └── AssumptionWarning                      the answer holds only under an assumption that was not checked

Every message names the argument, what it must be and what it got.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array, Flags

__all__ = [
    "AssumptionWarning",
    "CalibrationError",
    "ImplicationError",
    "InputError",
    "InputTypeError",
    "MissingExtraError",
    "WhosinError",
    "WhosinWarning",
]


class WhosinError(Exception):
    """Base class of every error that whosin raises on purpose.

    Examples
    --------
    >>> import whosin as wi
    >>> try:
    ...     wi.PureDP(-1.0)
    ... except wi.errors.WhosinError as error:
    ...     print(error)
    epsilon must be a number in [0, inf], got -1.0
    """


class InputError(WhosinError, ValueError):
    """An argument has a value that makes no sense."""


class InputTypeError(WhosinError, TypeError):
    """An argument is of the wrong kind."""


class ImplicationError(WhosinError, ValueError):
    """No theorem leads from this guarantee to the one asked for."""


class CalibrationError(WhosinError, ValueError):
    """The target risk cannot be reached by any value of the parameter."""


class MissingExtraError(WhosinError, ImportError):
    """An optional dependency is not installed."""


class LedgerError(WhosinError):
    """The ledger cannot be read or written, or is not what it was. Never shows a password."""


class BudgetError(LedgerError):
    """The release would take the total beyond the budget; nothing was recorded."""


def missing_extra(what: str, extra: str) -> MissingExtraError:
    """Return the error of an optional package that is not there, with the command that installs it."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        parts = [line.split(";") for line in requires("whosin") or () if line.endswith(f"extra == '{extra}'")]
    except PackageNotFoundError:
        parts = []
    packages = " ".join(f"'{name.strip()}'" for name, *_ in parts)
    return MissingExtraError(f"{what}: pip install {packages}" if packages else f"{what}: install the extra {extra!r}")


class WhosinWarning(UserWarning):
    """Base class of every warning that whosin issues."""


class AssumptionWarning(WhosinWarning):
    """The answer holds only under an assumption that was not checked."""


_WORDS = {
    "valid number": "number",
    "valid integer": "whole number",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
LARGEST_WHOLE = 10**1000
"""Whole numbers beyond this are refused: Python does not write those of some thousand digits."""
_SHOWN = 200


def short_repr(value: Any) -> str:
    """Return a value as errors show it: written out, and cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # a number too long for Python to write, or a class with a mistake in it
        return f"what cannot be written, of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return ``value`` as a float inside the stated interval, or raise an error that names the argument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, got {short_repr(value)} of type {type(value).__name__}")
    number = _as_float(value)
    too_low = number <= low if open_low else number < low
    too_high = number >= high if open_high else number > high
    if math.isnan(number) or too_low or too_high:
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise InputError(f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {short_repr(value)}")
    return number


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_probability(name: str, value: Any) -> float:
    """Return ``value`` as a probability in [0, 1]."""
    return check_number(name, value, low=0.0, high=1.0)


def check_prior(value: Any, name: str = "prior") -> float:
    """Return a prior probability of membership, strictly between 0 and 1.

    At 0 or 1 there is nothing left to infer, and odds are not defined.
    """
    return check_number(name, value, low=0.0, high=1.0, open_low=True, open_high=True)


def check_confidence(value: Any) -> float:
    """Return a confidence level, strictly between 0 and 1."""
    return check_number("confidence_level", value, low=0.0, high=1.0, open_low=True, open_high=True)


def check_whole(name: str, value: Any, *, low: int = 0, high: int | None = None) -> int:
    """Return ``value`` as a whole number of at least ``low`` (and at most ``high``)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a whole number, got {short_repr(value)} of type {type(value).__name__}")
    number = int(value) if isinstance(value, numbers.Integral) else _as_float(value)
    most = LARGEST_WHOLE if high is None else high
    whole = isinstance(number, int) or number.is_integer()
    if not whole or number < low or number > most:
        limit = "" if high is None and number <= most else f" and at most {_brief(most)}"
        raise InputError(f"{name} must be a whole number of at least {low}{limit}, got {short_repr(value)}")
    return int(number)


def _brief(number: int) -> str:
    from decimal import Decimal

    return str(number if number < 10**30 else Decimal(number).normalize())


def check_rates(name: str, value: ArrayLike) -> Array:
    """Return a scalar or array of rates in [0, 1] as a float array of the same shape."""
    try:
        given = np.asarray(value)
    except ValueError:
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise InputTypeError(f"{name} must be a number or an array of numbers in [0, 1], got {short_repr(value)}")
    rates = given.astype(np.float64)
    if not np.all((rates >= 0.0) & (rates <= 1.0)):
        worst = rates.ravel()[~((rates >= 0.0) & (rates <= 1.0)).ravel()][0]
        raise InputError(f"{name} must be rates in [0, 1], got {float(worst)}")
    return rates


def check_rng(value: Any) -> np.random.Generator:
    """Return the generator of None, a seed or a generator."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        raise InputTypeError(f"rng must be None, a seed or a numpy Generator, got {short_repr(value)}") from None


def spawned(rng: Any) -> list[np.random.Generator]:
    """Return two independent generators of a seed or a generator."""
    try:
        return np.random.default_rng(rng).spawn(2)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"rng must be a seed or a generator that can spawn others, got {rng!r} ({error})"
        ) from None


def check_callable(name: str, value: Any) -> Any:
    """Return ``value`` if it can be called."""
    if not callable(value):
        raise InputTypeError(f"{name} must be a function, got {short_repr(value)}")
    return value


def check_records(name: str, values: Any) -> tuple[Any, ...]:
    """Return ``values`` as a tuple of things that can be hashed and told apart by position."""
    try:
        records = tuple(values)
    except TypeError:
        raise InputTypeError(f"{name} must be a sequence, got {short_repr(values)}") from None
    if not records:
        raise InputError(f"{name} must have at least one entry, got none: {records!r}")
    for i, record in enumerate(records):
        try:
            hash(record)
        except TypeError:
            raise InputTypeError(
                f"{name} must be hashable entries, got {short_repr(record)} of type {type(record).__name__} "
                f"at position {i}: make it a tuple, or use row numbers"
            ) from None
    return records


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {listed(map(repr, choices))}, got {short_repr(value)}")
    return str(value)


def listed(names: Iterable[str]) -> str:
    """Join names by commas, those with a comma in them in double quotes, as :func:`split_names` reads them."""
    return ", ".join('"' + name.replace('"', '""') + '"' if "," in name else name for name in names)


def split_names(text: str) -> list[str]:
    """Return names that were separated by commas; they may have line ends in them."""
    found = re.findall(r'(?:^|,)\s*(?:"((?:[^"]|"")*)"\s*(?=,|\Z)|([^,]*))', text)
    return [(quoted.replace('""', '"') or plain).strip() for quoted, plain in found]


def must_be(found: Mapping[str, Any]) -> str:
    """Return in our words what pydantic, on which Typer and FastAPI stand, says of a value."""
    said = str(found["msg"])
    if not said.startswith("Input should be "):
        return "is needed" if found["type"] == "missing" else f"is refused: {said}"
    wanted = said.removeprefix("Input should be ").partition(", ")[0]
    for theirs, ours in _WORDS.items():
        wanted = wanted.replace(theirs, ours)
    return f"must be {wanted}, got {short_repr(found['input'])}"


def check_truth(name: str, given: Any, shape: tuple[int, ...]) -> Flags:
    """Return an array of booleans, or of 0 and 1, as booleans."""
    values = np.asarray(given)
    if values.shape != shape or values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        got = "nothing" if given is None else f"{values.dtype} of shape {values.shape}"
        raise InputError(f"{name} must be 1 or 0, or True or False, of shape {shape}, got {got}")
    return values.astype(bool)
