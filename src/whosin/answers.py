"""The shape of every answer: one curve, the risks read off it, what it assumes, a paragraph, a dictionary.

What takes no argument is an attribute (``x.roc``, ``x.advantage``, ``x.assumes``), what takes one is a method
(``x.accuracy(prior)``, ``x.posterior(prior)``, ``x.tpr_at(fpr)``, ``x.risk(metric, prior)``, ``x.explain(prior)``).
A number that is proved is a float, one that was measured is an estimate with limits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from whosin import risks
from whosin.arrays import Array
from whosin.errors import MissingExtraError, check_choice, check_prior
from whosin.numerics.rounding import about, at_least, at_most
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Answer(ABC):
    """What every answer has: assumptions, a paragraph, a dictionary for JSON, one line and a card for notebooks."""

    @property
    @abstractmethod
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""

    @abstractmethod
    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""

    def _lists(self) -> dict[str, tuple[str, ...]]:
        """The lists under the paragraph of the card, by their titles."""
        return {"Assumes": self.assumes}

    def _repr_html_(self) -> str:
        return card(str(self), self.explain(), self._lists())


class CurveAnswer(Answer):
    """An answer that is proved: an upper limit on any attacker's ROC, and every risk read off that curve."""

    @property
    @abstractmethod
    def roc(self) -> Roc:
        """The upper limit of any attacker's ROC."""

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR."""
        return risks.advantage(self.roc)

    def accuracy(self, prior: float = 0.5) -> float:
        """Return the best share of right guesses at that prior, never below max(prior, 1-prior)."""
        return risks.accuracy(self.roc, prior)

    def tpr_at(self, fpr: ArrayLike) -> float | Array:
        """Return the largest TPR at each FPR: a float for a number, an array for an array."""
        value: float | Array = self.roc.tpr(fpr)
        return value

    def log_likelihood_ratios(self) -> tuple[float, float]:
        """Return the smallest and largest ln P(output | in) / P(output | out) that the curve allows."""
        low, high = self.roc.slopes
        return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else -math.inf)

    def posterior(self, prior: float) -> tuple[float, float]:
        """Return the range of P(record in D | any output): the prior odds times the extreme likelihood ratios.

        The upper end is 1.0 where nothing smaller is true, the lower end 0.0 where nothing larger is.
        """
        prior = check_prior(prior)
        low, high = self.log_likelihood_ratios()
        return risks.posterior_at(prior, low), risks.posterior_at(prior, high)

    def risk(self, metric: str | risks.Risk, prior: float = 0.5) -> float:
        """Return the largest value of any metric of :mod:`whosin.risks` at that prior.

        Where the answer has a closed form of its own, that is taken: differences of rates that are read off a curve
        lose the digits of small risks.
        """
        prior, named = check_prior(prior), risks.resolve(metric)
        if named is risks.accuracy:
            return self.accuracy(prior)
        if named is risks.advantage:
            return self.advantage
        if named is risks.am:
            return 0.5 + 0.5 * self.advantage
        if named is risks.ppv:
            return risks.posterior_at(prior, self.log_likelihood_ratios()[1])
        if named is risks.npv:
            return risks.absence_at(prior, self.log_likelihood_ratios()[0])
        return float(named(self.roc, prior))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the curve; return the axes."""
        return self.roc.plot(ax=ax)


class Said:
    """A result that its text says all about: the text is its card in notebooks, too."""

    def _repr_html_(self) -> str:
        return card(str(self))


_TONES = {"bad": "#b3361e", "good": "#00704f", "": "#0072b2"}


def card(title: str, paragraph: str = "", lists: Mapping[str, Iterable[str]] | None = None, *, tone: str = "") -> str:
    """Return the small HTML card that a notebook shows: the title, a paragraph, lists to unfold.

    ``tone`` is "bad", "good" or nothing.
    """
    listed = "".join(
        f"<details><summary>{escape(name)}</summary><ul>"
        f"{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul></details>"
        for name, lines in (lists or {}).items()
    )
    said = f"<p>{escape(paragraph)}</p>" if paragraph else ""
    edge = f"border:1px solid #8884;border-left:.4em solid {_TONES[tone]};border-radius:.4em;padding:.3em 1em"
    return f'<div style="{edge};max-width:52em"><p><b>{escape(title)}</b></p>{said}{listed}</div>'


class Rows:
    """A table of results: a data frame, and an HTML table in notebooks."""

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name, all of one length."""
        raise NotImplementedError

    def to_frame(self, kind: str = "polars") -> Any:
        """Return the table as a data frame of "polars" or "pandas"."""
        columns = {name: list(values) for name, values in self._columns().items()}
        if check_choice("kind", kind, ("polars", "pandas")) == "pandas":
            try:
                import pandas as pd  # type: ignore[import-untyped]
            except ImportError:
                raise MissingExtraError("a pandas frame needs pandas: pip install pandas") from None
            return pd.DataFrame(columns)
        import polars as pl

        return pl.DataFrame(columns)

    def _repr_html_(self) -> str:
        columns = {name: list(values)[:MOST_ROWS] for name, values in self._columns().items()}
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(_cell(*cell))}</td>' for cell in zip(columns, row, strict=True))}</tr>"
            for row in zip(*columns.values(), strict=True)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


MOST_ROWS = 20
"""Rows of a table that a notebook shows."""


def limits_by_column(found: Iterable[Any]) -> dict[str, list[float]]:
    """Return the estimates of several results with their limits, one list each."""
    values = list(found)
    return {side: [float(getattr(each, side)) for each in values] for side in ("estimate", "lower", "upper")}


def _cell(name: str, value: Any) -> str:
    """Write a value for people; limits are rounded outwards."""
    if not isinstance(value, float):
        return str(value)
    return at_least(value) if "lower" in name else at_most(value) if "upper" in name else about(value)


def parts(of: object, *names: str) -> dict[str, Any]:
    """Return attributes by their names for JSON: results as their dictionaries, tuples as lists, infinity as text."""
    return {name: _plain(getattr(of, name)) for name in names}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return finite_or_text(value) if isinstance(value, float) else value


def finite_or_text(value: float) -> float | str:
    """Return a number as JSON can hold it: infinity and NaN as text."""
    return value if math.isfinite(value) else str(value)
