"""The printed noise of Izzo et al. (2022), for comparison only.

With σ^M ≥ E‖θ - Eθ‖^M, noise of density ∝ exp(-‖x‖/(c·σ)) is η-MIP for c = (7.5/η)^(1 + 2/M) by theorem 9, and for c =
(6.16/η)^(1 + 2/M), M ≥ 2, by corollaries 10 and 14. True, and far from needed: s = σ/ln(1/(1 - 2η)) is η-MIP already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputTypeError, check_number, check_whole
from whosin.protection.estimators import Sum, as_estimator
from whosin.protection.pool import draw_of
from whosin.protection.training import Trainer, collect, run, seeds_of

__all__ = ["izzo_noise", "paper_scale"]


def paper_scale(eta: float, sigma: float, moment: float = 2.0) -> float:
    """Return (6.16/η)^(1 + 2/M)·σ of corollary 10 for a bound σ on the root of the M-th central moment, M ≥ 2."""
    target = check_number("eta", eta, low=1e-12, high=0.5, open_high=True)
    spread = check_number("sigma", sigma, low=0.0, open_high=True)
    order = check_number("moment", moment, low=2.0, open_high=True)
    return float((6.16 / target) ** (1.0 + 2.0 / order) * spread)


def izzo_noise(
    estimator: Any,
    records: Any,
    *,
    eta: float,
    moment: float = 2.0,
    train_fraction: float = 0.5,
    subsets: int = 256,
    n_jobs: int | None = None,
    rng: Any = None,
) -> NDArray[np.float64]:
    """Return the scales of algorithm 1, repaired: σ from subsets of the pool, of the size that is released.

    As printed, σ comes from the drawn records, and the noise then gives members away. The noise that goes with these
    scales has density ∝ exp(-‖x/scales‖_M). Nothing is certified, for σ is estimated: use :func:`protect` to release.
    """
    understood, pool = as_estimator(estimator, records)
    if isinstance(understood, Sum):
        raise InputTypeError("izzo_noise needs a function or a model, got a sum: pass a function such as numpy.mean")
    factor = paper_scale(eta, 1.0, moment)
    seeds = seeds_of(np.random.default_rng(rng), check_whole("subsets", subsets, low=2))
    trainer = Trainer(understood, pool, draw_of(len(pool), train_fraction)).settled(seeds[0])
    values = np.array(collect(run(trainer.train_on_draw, seeds, n_jobs), "subsets"))
    away = np.abs(values - values.mean(axis=0))
    largest = float(away.max()) or 1.0
    spread = ((away / largest) ** moment).mean(axis=0) ** (1.0 / moment) * largest
    coordinates = int(np.prod(values.shape[1:]))
    return np.asarray(factor * coordinates ** (1.0 / moment) * spread)
