"""Noise added to the answer of a query: Laplace, Gaussian, and exponential in any norm."""

from __future__ import annotations

import itertools
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from whosin.arrays import Array, Flags
from whosin.errors import InputError, InputTypeError, check_callable, check_number
from whosin.guarantees import GaussianDP, PureDP
from whosin.mechanisms.base import Records
from whosin.mechanisms.secure import gaussian, norm_exponential
from whosin.mechanisms.sources import SecureSource, Source

Adjacency = Literal["add_remove", "replace"]
Answer = float | Array


class AdditiveMechanism(ABC):
    """Publish query(records) plus noise of a known density.

    Parameters
    ----------
    query : callable
        From a tuple of records to a finite number, or an array of them. Worlds play one number.
    scale : float
        The noise's scale, above 0: b of Laplace noise (standard deviation b√2), σ of Gaussian noise.

    Examples
    --------
    The three kinds of noise differ in what they promise at one scale:

    >>> import whosin as wi
    >>> for kind in (wi.mechanisms.Laplace, wi.mechanisms.Gaussian, wi.mechanisms.NormExponential):
    ...     print(kind.__name__, round(kind(len, 2.0).guarantee(sensitivity=1.0).advantage, 4))
    Laplace 0.2449
    Gaussian 0.1974
    NormExponential 0.2449
    >>> round(wi.mechanisms.Laplace(len, 2.0).sample("abc", wi.mechanisms.SeededSource(0)), 2)
    2.49
    """

    noise: ClassVar[str]

    def __init__(self, query: Callable[[Records], Any], scale: float) -> None:
        self.query = check_callable("query", query)
        self.scale = check_number("scale", scale, low=0.0, open_low=True, open_high=True)

    def centres(self, universe: Sequence[Any], membership: Flags) -> Array:
        """Return the query's value on each data set; one call a data set."""
        values = np.empty(len(membership))
        for i, members in enumerate(membership.tolist()):
            records = tuple(itertools.compress(universe, members))
            value = self.query(records)
            if isinstance(value, np.ndarray) and value.size == 1:
                value = value.item()
            if not isinstance(value, numbers.Real) or isinstance(value, bool):
                raise InputTypeError(f"query must be a function that returns a number, got {value!r} on {records!r}")
            values[i] = float(value)
            if not np.isfinite(values[i]):
                raise InputError(f"query must be a function with finite values, got {float(value)} on {records!r}")
        return values

    def sample(self, records: Sequence[Any], source: Source | None = None) -> Answer:
        """Return one noisy answer: a float for a number, an array of the same shape for an array.

        Parameters
        ----------
        records : sequence
        source : Source, optional
            The operating system's randomness by default; a seeded one protects nobody.
        """
        answer = self.query(tuple(records))
        noisy = self._release(answer, SecureSource() if source is None else source)
        return noisy if np.ndim(answer) else float(noisy)

    @abstractmethod
    def _release(self, answer: Any, source: Source) -> Array:
        """Add the noise."""

    def _steps(self, sensitivity: float) -> float:
        """Return the sensitivity in noise scales, rounded up."""
        length = check_number("sensitivity", sensitivity, low=0.0, open_high=True)
        return math.nextafter(length / self.scale, math.inf) if length else 0.0


class Gaussian(AdditiveMechanism):
    """Gaussian noise with standard deviation ``scale``, independent in each coordinate.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.mechanisms.Gaussian(len, 2.0).guarantee(sensitivity=1.0).mu, 9)
    0.5
    """

    noise = "gaussian"

    def _release(self, answer: Any, source: Source) -> Array:
        return gaussian(answer, self.scale, source)

    def guarantee(self, sensitivity: float, adjacency: Adjacency = "add_remove") -> GaussianDP:
        """Return μ = sensitivity/scale (Dong, Roth and Su 2019), tight.

        ``.implies(ApproxDP, delta=δ)`` of the result is the exact (ε, δ) of Balle and Wang 2018.

        Parameters
        ----------
        sensitivity : float
            Largest Euclidean distance between the answers on adjacent data sets.
        adjacency : {"add_remove", "replace"}
            Which data sets that sensitivity compares.
        """
        return GaussianDP(self._steps(sensitivity), adjacency)


class NormExponential(AdditiveMechanism):
    """Noise with density proportional to exp(-‖x‖_p / scale); Laplace noise in one dimension.

    Parameters
    ----------
    query : callable
        From a tuple of records to a number or an array.
    scale : float
        Above 0.
    norm : float, default 2
        p in [1, ∞].

    Examples
    --------
    Two totals at once; a person changes them by a vector of length 1 at most:

    >>> import numpy as np, whosin as wi
    >>> mechanism = wi.mechanisms.NormExponential(lambda records: np.sum(records, axis=0), 2.0)
    >>> round(mechanism.guarantee(sensitivity=1.0).epsilon, 9)
    0.5
    >>> mechanism.sample([[0.6, 0.8], [1.0, 0.0]], wi.mechanisms.SeededSource(0)).round(2).tolist()
    [2.08, -0.43]
    """

    noise = "laplace"

    def __init__(self, query: Callable[[Records], Any], scale: float, norm: float = 2.0) -> None:
        super().__init__(query, scale)
        self.norm = check_number("norm", norm, low=1.0)

    def _release(self, answer: Any, source: Source) -> Array:
        return norm_exponential(answer, self.scale, self.norm, source)

    def guarantee(self, sensitivity: float, adjacency: Adjacency = "add_remove") -> PureDP:
        """Return ε = sensitivity/scale (Dwork et al. 2006), tight for one coordinate.

        Parameters
        ----------
        sensitivity : float
            Largest distance, in the p-norm of the noise, between the answers on adjacent data sets.
        adjacency : {"add_remove", "replace"}
            Which data sets that sensitivity compares.
        """
        return PureDP(self._steps(sensitivity), adjacency)


class Laplace(NormExponential):
    """Laplace noise: density proportional to the exponential of minus the distance over ``scale``.

    An array gets independent noise in each coordinate: :class:`NormExponential` with norm 1, and sensitivities in ℓ1.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.mechanisms.Laplace(len, 2.0).guarantee(sensitivity=1.0).epsilon, 9)
    0.5
    """

    def __init__(self, query: Callable[[Records], Any], scale: float) -> None:
        super().__init__(query, scale, 1.0)
