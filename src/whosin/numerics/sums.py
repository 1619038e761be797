"""Laws of sums of independent draws, by FFT, with a proven limit on all that rounding can have moved.

Let c = 8·eps·log₂ n. An FFT of n numbers is off by at most c of its own 2-norm (Higham 2002, theorem 24.2: 3.4·eps for
each factor 2 with weights that are right to the last digit, and 6.1·eps with weights off by 4.5·eps, as products of two
rounded ones are; for factors 3 and 5 a row of 3 or 5 products and sums costs less than log₂ 3 and log₂ 5 times 8·eps).
A product of complex numbers is off by at most √5/2·eps of itself (Brent, Percival and Zimmermann 2007), so a power x^m
by squaring by m - 1 times that.

Let V and X be the transforms of laws v and x, and M and L limits on their largest numbers, computed or true:
Σ|v| + c√n·‖v‖ and Σ|x| + c√n·‖x‖. Then V·X^m is computed to within √n·(c + 2·eps)·(‖v‖L^m + m·M·L^(m-1)·‖x‖) in the
2-norm. Going back divides by √n and adds c·‖v‖L^m. By Cauchy and Schwarz the sum of all errors is at most √n times
their 2-norm. It grows as m and would be 1e-8 for ten thousand draws in 53 binary digits; transforms are computed with
as many digits as the machine has (64 on most, where it is 1e-11).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.arrays import Array

_WIDE: Any = np.longdouble


def sums_of_draws(law: Array, others: int, size: int, firsts: tuple[Array, ...]) -> list[tuple[Array, float]]:
    """Return for each first law the masses of its draw plus ``others`` draws of ``law``, and a limit on their error.

    Cells are numbered from 0; sums of ``size`` and more wrap round. The limit is on Σ|computed - true| over all cells,
    for the laws as they are given. Masses below 0 are cut: that brings them no further from the true ones. ``size`` is
    a product of the factors 2, 3 and 5, and no law is longer. Cost: O(size·(log size + log others)).
    """
    from scipy.fft import irfft, rfft

    power = power_of(rfft(law.astype(_WIDE), size), others, operator.mul)
    found = []
    for first in firsts:
        transform = rfft(first.astype(_WIDE), size)
        masses = irfft(transform if power is None else transform * power, size).astype(np.float64)
        found.append((np.maximum(masses, 0.0), _moved(law, others, size, first)))
    return found


def _moved(law: Array, others: int, size: int, first: Array) -> float:
    """The limit on Σ|computed - true| of the module's docstring."""
    eps = float(np.finfo(_WIDE).eps)
    off = 8.0 * eps * math.log2(max(size, 2))
    (largest, length), (most, own) = (_largest(each, off, size) for each in (law, first))
    spread = 2.0 * own * largest**others + others * most * largest ** max(others - 1, 0) * length
    return 1.01 * math.sqrt(size) * (off + 2.0 * eps) * spread + 2.0**-52 * most * largest**others


def _largest(law: Array, off: float, size: int) -> tuple[float, float]:
    """A limit on every number of the transform of a law, and the law's 2-norm."""
    length = math.sqrt(float(np.sum(law * law))) * (1.0 + 1e-9)
    return float(np.sum(np.abs(law))) * (1.0 + 1e-13) + off * math.sqrt(size) * length, length


def power_of(base: Any, exponent: int, product: Callable[[Any, Any], Any]) -> Any:
    """Return a product of so many factors that are all the base, by squaring; None for none."""
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else product(result, base)
        exponent >>= 1
        if exponent:
            base = product(base, base)
    return result
