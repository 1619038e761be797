"""Noise added to a number: Laplace and Gaussian."""

from __future__ import annotations

import itertools
import numbers
from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, check_callable, check_number
from whosin.mechanisms.base import Records

__all__ = ["AdditiveMechanism", "Gaussian", "Laplace"]


class AdditiveMechanism(ABC):
    """Publish query(records) plus noise of a known density.

    Parameters
    ----------
    query : callable
        From a tuple of records to a finite number.
    scale : float
        The noise's scale, above 0: b of Laplace noise (standard deviation b√2), σ of Gaussian noise.
    """

    noise: ClassVar[str]

    def __init__(self, query: Callable[[Records], float], scale: float) -> None:
        if type(self) is AdditiveMechanism:
            raise TypeError("AdditiveMechanism has no noise of its own: use Laplace or Gaussian")
        self.query = check_callable("query", query)
        self.scale = check_number("scale", scale, low=0.0, open_low=True, open_high=True)

    def centres(self, universe: Sequence[Any], membership: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the query's value on each data set; one call a data set."""
        values = np.empty(len(membership))
        for i, members in enumerate(membership.tolist()):
            records = tuple(itertools.compress(universe, members))
            value = self.query(records)
            if not isinstance(value, numbers.Real) or isinstance(value, bool):
                raise InputTypeError(f"query takes a function that returns a number, got {value!r} on {records!r}")
            values[i] = float(value)
            if not np.isfinite(values[i]):
                raise InputError(f"query takes a function with finite values, got {float(value)} on {records!r}")
        return values


class Laplace(AdditiveMechanism):
    """Laplace noise: density proportional to the exponential of minus the distance over ``scale``."""

    noise = "laplace"


class Gaussian(AdditiveMechanism):
    """Gaussian noise with standard deviation ``scale``."""

    noise = "gaussian"
