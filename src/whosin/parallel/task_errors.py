"""What a task raised, as a result that travels: where a backend raises it, what was ready before is thrown away."""

from __future__ import annotations

import importlib
import pickle
import traceback
from collections.abc import Callable
from typing import Any

from whosin.errors import WhosinError


def pickler_of_joblib() -> Any:
    """Return cloudpickle as joblib has it: inside itself, or beside since its version 1.6.

    An exception of a class that a notebook defines comes back as that class if the same pickler took it there.
    """
    try:
        return importlib.import_module("joblib.externals.cloudpickle")
    except ImportError:
        return importlib.import_module("cloudpickle")


def numbered_call(call: Callable[[Any], Any], number: int, item: Any) -> tuple[int, Any]:
    try:
        return number, call(item)
    except Exception as error:
        return number, TaskError(error, traceback.format_exc())


class TaskError:
    """What a task raised, and where."""

    def __init__(self, error: Exception, place: str) -> None:
        self.error, self.place = error, place

    def as_it_was(self) -> Exception:
        if self.error.__traceback__ is None:  # it comes from another process
            self.error.add_note(self.place)
        return self.error

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            packed = pickler_of_joblib().dumps(self.error)
            pickle.loads(packed)
        except Exception:
            return TaskError, (WhosinError(f"{type(self.error).__name__}: {self.error}"), self.place)
        return _returned, (packed, self.place)


def _returned(packed: bytes, place: str) -> TaskError:
    return TaskError(pickle.loads(packed), place)
