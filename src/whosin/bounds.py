"""The closed forms of the literature, side by side.

Every row says which quantity it limits (accuracy, advantage = TPR - FPR, or PPV = posterior of an accused record) and
what it needs; the tightest one within a quantity is marked. Nothing else in the library is computed from these forms:
they are here to compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from whosin import risks
from whosin.answers import Rows
from whosin.errors import check_choice, check_number, check_prior, check_probability
from whosin.guarantees import ApproxDP, GaussianDP
from whosin.guarantees.dp import gaussian_mu

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Bound", "BoundsTable", "table"]


@dataclass(frozen=True)
class Bound:
    """One published bound at given parameters.

    Examples
    --------
    >>> import whosin as wi
    >>> print(wi.bounds.table(1.0).tightest("accuracy"))
    accuracy ≤ 0.731059  Thudi et al. 2022: 1/(1+e^{-ε})
    """

    name: str
    source: str
    quantity: str
    """"accuracy", "advantage" or "ppv"."""
    value: float | None
    """The bound, capped at 1; None where it does not apply."""
    formula: str
    needs: str
    """What it takes beyond (ε, δ)-DP; empty for none."""
    general: bool
    """Whether it holds for every mechanism with this guarantee (only such rows compete for tightest)."""
    tightest: bool = False

    def __str__(self) -> str:
        number = "does not apply" if self.value is None else f"{self.value:.6f}"
        return f"{self.quantity} ≤ {number}  {self.name}: {self.formula}"


@dataclass(frozen=True)
class BoundsTable(Rows):
    """The bounds at one (ε, δ, prior), in the order of their quantity.

    Examples
    --------
    >>> import whosin as wi
    >>> table = wi.bounds.table(1.0, delta=1e-5)
    >>> for row in table:
    ...     if row.quantity == "advantage":
    ...         print(row.name, None if row.value is None else round(row.value, 4))
    Yeom et al. 2018 None
    Erlingsson et al. 2019 0.6321
    Humphries et al. 2020 0.4621
    Mahloujifar et al. 2022 0.1066
    Xu et al. 2022 (MACE), printed None
    >>> table.tightest("advantage").source
    'CSF 2023'
    """

    epsilon: float
    delta: float
    prior: float
    fpr: float
    rows: tuple[Bound, ...]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def tightest(self, quantity: str) -> Bound:
        """Return the tightest general bound on a quantity."""
        check_choice("quantity", quantity, ("accuracy", "advantage", "ppv"))
        return next(row for row in self.rows if row.quantity == quantity and row.tightest)

    def to_dict(self) -> dict[str, Any]:
        """Return the table for JSON."""
        head = {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "delta": self.delta,
            "prior": self.prior,
        }
        return {**head, "fpr": self.fpr, "bounds": [asdict(row) for row in self.rows]}

    def __str__(self) -> str:
        lines = [
            f"Bounds at ε = {self.epsilon:g}, δ = {self.delta:g}, prior {self.prior:g} (* tightest of its quantity)"
        ]
        for row in self.rows:
            number = "   -    " if row.value is None else f"{row.value:8.6f}"
            lines.append(f"{'*' if row.tightest else ' '} {row.quantity:9s} {number}  {row.name:32s} {row.formula}")
        return "\n".join(lines)

    __repr__ = __str__

    def _columns(self) -> dict[str, list[str]]:
        values = ["–" if row.value is None else f"{row.value:.6f}{' *' if row.tightest else ''}" for row in self.rows]
        shown = {"quantity": "quantity", "at most": "", "bound": "name", "formula": "formula", "needs": "needs"}
        return {head: [getattr(row, name) for row in self.rows] if name else values for head, name in shown.items()}

    def plot(self, ax: Axes | None = None, *, quantity: str | None = None) -> Axes:
        """Draw the bounds; return the Matplotlib axes. Takes the extra ``whosin[plot]``.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones by default.
        quantity : {"accuracy", "advantage", "ppv"}, optional
            Draw the bounds on this quantity for every ε from 0 to twice that of the table (to 4 for an infinite one),
            at its δ and prior. Without it, all bounds at the ε of the table.
        """
        import numpy as np

        from whosin.plots import draw_bounds, draw_bounds_by_epsilon

        if quantity is None:
            rows = [(row, row.value) for row in self.rows if row.value is not None]
            return draw_bounds(
                ax,
                [row.name for row, _ in rows],
                [row.quantity for row, _ in rows],
                np.array([value for _, value in rows]),
                [row.tightest for row, _ in rows],
                f"ε = {self.epsilon:g}, δ = {self.delta:g}, prior {self.prior:g}",
            )
        check_choice("quantity", quantity, ("accuracy", "advantage", "ppv"))
        epsilon = np.linspace(0.0, 2.0 * self.epsilon if 0.0 < self.epsilon < math.inf else 4.0, 101)
        tables = [table(float(e), self.delta, self.prior, self.fpr) for e in epsilon]
        curves = {}
        for i, row in enumerate(self.rows):
            values = [each.rows[i].value for each in tables]
            if row.quantity == quantity and None not in values:
                curves[row.name] = np.array(values, dtype=np.float64)
        return draw_bounds_by_epsilon(ax, epsilon, curves, quantity, self.epsilon)


def table(epsilon: float, delta: float = 0.0, prior: float = 0.5, fpr: float = 0.01) -> BoundsTable:
    """Return the literature's bounds for (ε, δ)-DP side by side.

    Parameters
    ----------
    epsilon, delta : float, default 0 for delta
        The guarantee.
    prior : float, default 0.5
        Probability that the record is in.
    fpr : float, default 0.01
        False positive rate of the one bound that fixes it (Jayaraman et al.).

    Returns
    -------
    BoundsTable
        Iterable over :class:`Bound` rows; values are capped at 1.

    Examples
    --------
    >>> import whosin as wi
    >>> best = wi.bounds.table(1.0, delta=1e-5).tightest("advantage")
    >>> best.name, round(best.value, 4)
    ('Humphries et al. 2020', 0.4621)
    """
    epsilon = check_number("epsilon", epsilon, low=0.0)
    delta, prior = check_probability("delta", delta), check_prior(prior)
    fpr = check_number("fpr", fpr, low=0.0, high=1.0, open_low=True)
    known = {
        "advantage": _advantage_rows(epsilon, delta),
        "accuracy": _accuracy_rows(epsilon, delta, prior),
        "ppv": _ppv_rows(epsilon, delta, prior, fpr),
    }
    rows = [
        Bound(name, _SOURCES[name], quantity, value, formula, needs, name not in _ONE_MECHANISM)
        for quantity, found in known.items()
        for name, value, formula, needs in found
    ]
    return BoundsTable(epsilon, delta, prior, fpr, _mark(rows))


def yeom(epsilon: float) -> float:
    """Return Yeom et al.'s (2018) bound on the advantage of ε-DP, e^ε - 1, capped at 1."""
    return min(1.0, math.expm1(min(epsilon, 1.0)))


def erlingsson(epsilon: float, delta: float = 0.0) -> float:
    """Return Erlingsson et al.'s (2019) bound on the advantage, 1 - e^{-ε}(1 - δ)."""
    return 1.0 - math.exp(-epsilon) * (1.0 - delta)


def humphries(epsilon: float, delta: float = 0.0) -> float:
    """Return Humphries et al.'s (2020) bound on the advantage, (e^ε - 1 + 2δ)/(e^ε + 1): tight."""
    return ApproxDP(epsilon, delta).advantage


def sablayrolles(epsilon: float, prior: float = 0.5) -> float:
    """Return Sablayrolles et al.'s (2019) bound on the posterior of ε-DP, prior + ε/4, capped at 1."""
    return min(1.0, prior + epsilon / 4.0)


def thudi(epsilon: float, prior: float = 0.5) -> float:
    """Return Thudi et al.'s (2022) bound on the posterior of ε-DP, 1/(1 + e^{-ε}(1-prior)/prior): tight."""
    return ApproxDP(epsilon, 0.0).posterior(prior)[1]


def mace_pointwise(epsilon: float, prior: float = 0.5) -> float:
    """Return Xu et al.'s (2022, theorem 1) bound on |2·posterior - 1| of ε-DP, max |tanh((±ε + logit prior)/2)|."""
    logit = math.log(prior / (1.0 - prior))
    return max(abs(math.tanh((epsilon + logit) / 2.0)), abs(math.tanh((logit - epsilon) / 2.0)))


def mace_average(epsilon: float, prior: float = 0.5) -> float:
    """Return the limit that the average obeys instead: 2·accuracy - 1 ≤ max(|2·prior - 1|, tanh(ε/2))."""
    return max(abs(2.0 * prior - 1.0), math.tanh(epsilon / 2.0))


def mahloujifar(mu: float) -> float:
    """Return the exact advantage against the Gaussian mechanism, 2Φ(μ/2) - 1 (Mahloujifar et al. 2022)."""
    return GaussianDP(mu).advantage


def _pure(delta: float, value: float) -> float | None:
    return value if delta == 0.0 else None


_SOURCES = {
    "Yeom et al. 2018": "CSF 2018",
    "Erlingsson et al. 2019": "arXiv:1908.03566",
    "Sablayrolles et al. 2019": "ICML 2019",
    "Humphries et al. 2020": "CSF 2023",
    "Jayaraman et al. 2020": "PoPETs 2021",
    "Mahloujifar et al. 2022": "arXiv:2204.06106",
    "Thudi et al. 2022": "theorem 1",
    "Izzo et al. 2022": "theorem 4",
    "Xu et al. 2022 (MACE), printed": "theorem 1(4)",
    "Xu et al. 2022 (MACE), corrected": "theorem 1(4)",
    "exact ceiling": "from the curve",
}
_PURE, _HALF = "δ = 0", "prior 1/2"
_DRAWN = "δ = 0; the training set drawn at random inside the experiment"
_ONE_MECHANISM = ("Mahloujifar et al. 2022", "Jayaraman et al. 2020")
"""Bounds that do not hold for every mechanism, or every attacker."""

Row = tuple[str, float | None, str, str]
"""Name, value, formula, and what it needs."""


def _advantage_rows(epsilon: float, delta: float) -> list[Row]:
    mu = gaussian_mu(epsilon, delta)
    gaussian = None if mu is None else mahloujifar(mu)
    return [
        ("Yeom et al. 2018", _pure(delta, yeom(epsilon)), "e^ε - 1", _PURE),
        ("Erlingsson et al. 2019", erlingsson(epsilon, delta), "1 - e^{-ε}(1-δ)", ""),
        ("Humphries et al. 2020", humphries(epsilon, delta), "(e^ε-1+2δ)/(e^ε+1)", ""),
        ("Mahloujifar et al. 2022", gaussian, "2Φ(μ/2) - 1", "the Gaussian mechanism with exactly this (ε, δ), δ > 0"),
        ("Xu et al. 2022 (MACE), printed", _pure(delta, mace_pointwise(epsilon)), "tanh(ε/2)", _DRAWN),
    ]


def _accuracy_rows(epsilon: float, delta: float, prior: float) -> list[Row]:
    curve = ApproxDP(epsilon, delta, "replace")
    at_half: list[Row] = [
        ("Yeom et al. 2018", _pure(delta, 0.5 + yeom(epsilon) / 2), "e^ε/2", f"{_PURE}, {_HALF}"),
        ("Erlingsson et al. 2019", 0.5 + erlingsson(epsilon, delta) / 2, "1 - e^{-ε}(1-δ)/2", _HALF),
        ("Sablayrolles et al. 2019", _pure(delta, sablayrolles(epsilon)), "1/2 + ε/4", f"{_PURE}, {_HALF}"),
        ("Thudi et al. 2022", _pure(delta, thudi(epsilon)), "1/(1+e^{-ε})", f"{_PURE}, {_HALF}, independent records"),
        ("Izzo et al. 2022", curve.accuracy(0.5), "δ + (1-δ)/(1+e^{-ε})", f"{_HALF}, a uniform half, replace-one DP"),
    ]
    average = _pure(delta, 0.5 + mace_average(epsilon, prior) / 2)
    return [
        *((name, value if prior == 0.5 else None, formula, needs) for name, value, formula, needs in at_half),
        ("Xu et al. 2022 (MACE), corrected", average, "max(p, 1-p, 1/(1+e^{-ε}))", _DRAWN),
        ("exact ceiling", curve.accuracy(prior), "max((1-p)+pδ, p+(1-p)δ, δ+(1-δ)/(1+e^{-ε}))", ""),
    ]


def _ppv_rows(epsilon: float, delta: float, prior: float, fpr: float) -> list[Row]:
    curve, worlds = ApproxDP(epsilon, delta), "independent records, add/remove DP"
    at_fpr = curve.risk(risks.ppv_at_fpr(fpr), prior)
    reached = f"p·TPR/(p·TPR + (1-p)·FPR) at FPR = {fpr:g}"
    return [
        ("Sablayrolles et al. 2019", _pure(delta, sablayrolles(epsilon, prior)), "p + ε/4", _PURE),
        ("Thudi et al. 2022", _pure(delta, thudi(epsilon, prior)), "1/(1+e^{-ε}(1-p)/p)", f"δ = 0, {worlds}"),
        ("Jayaraman et al. 2020", at_fpr, reached, f"an attacker with FPR = {fpr:g}"),
        ("exact ceiling", curve.posterior(prior)[1], "1/(1+e^{-ε}(1-p)/p), or 1 for δ > 0", worlds),
    ]


def _mark(rows: list[Bound]) -> tuple[Bound, ...]:
    """Mark the smallest value of each quantity among the general bounds, ties included."""
    best: dict[str, float] = {}
    for row in rows:
        if row.general and row.value is not None:
            best[row.quantity] = min(row.value, best.get(row.quantity, math.inf))
    return tuple(
        replace(row, tightest=row.general and row.value is not None and row.value <= best[row.quantity] * (1 + 1e-12))
        for row in rows
    )
