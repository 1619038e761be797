"""What a mechanism is: something that turns records into a random output with a known law."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.arrays import Array, Flags, Index
from whosin.errors import InputError, InputTypeError, check_callable
from whosin.mechanisms.sources import SecureSource, Source, check_source

MAX_CELLS = 2 * 10**8
"""Largest table (data sets × outputs) of probabilities that is held in memory."""

_NUMBERS = (int, float, Fraction, np.floating, np.integer)

Records = tuple[Any, ...]
Law = Mapping[Hashable, float]


class FiniteMechanism(ABC):
    """A mechanism with finitely many outputs, each data set having a law over them.

    Examples
    --------
    A mechanism of one's own says the law of its outputs; worlds play it, and it can be drawn from:

    >>> import whosin as wi
    >>> class Quiet(wi.mechanisms.FiniteMechanism):
    ...     def law(self, records):
    ...         return {"some": 0.75, "none": 0.25} if records else {"some": 0.25, "none": 0.75}
    >>> wi.worlds.all_subsets("ab").play(Quiet()).accuracy("a")
    0.625
    >>> Quiet().sample("ab", wi.mechanisms.SeededSource(0))
    'some'
    """

    @abstractmethod
    def law(self, records: Records) -> Law:
        """Return the probability of each output on these records."""

    def sample(self, records: Sequence[Any], source: Source | None = None) -> Hashable:
        """Return one output, drawn from the law on these records.

        Parameters
        ----------
        records : sequence
        source : Source, optional
            The operating system's randomness by default; a seeded one protects nobody.

        Notes
        -----
        The law is one of floats, so an output's probability is off by about 2^-52.
        """
        source = SecureSource() if source is None else check_source(source)
        law = self.law(tuple(records))
        outputs, cumulated = tuple(law), np.cumsum(_probabilities(law, tuple(records)))
        drawn = np.searchsorted(cumulated, source.uniform(1)[0] * cumulated[-1], side="left")
        return outputs[int(drawn)]

    def laws(self, universe: Sequence[Any], membership: Flags) -> tuple[tuple[Hashable, ...], Array]:
        """Return the outputs and the matrix (data sets, outputs) of probabilities.

        One call of :meth:`law` a data set; mechanisms that can do better override this.
        """
        columns: dict[Hashable, int] = {}
        known: dict[tuple[Hashable, ...], Index] = {}
        rows: list[tuple[Index, Array]] = []
        for members in membership.tolist():
            records = tuple(itertools.compress(universe, members))
            law = self.law(records)
            if not isinstance(law, Mapping):
                raise InputTypeError(
                    "mechanism must be a function that returns {output: probability}, "
                    f"got {type(law).__name__} for {records!r}"
                )
            outputs = tuple(law)
            if outputs not in known:
                known[outputs] = np.array(
                    [columns.setdefault(output, len(columns)) for output in outputs], dtype=np.intp
                )
            rows.append((known[outputs], _probabilities(law, records)))
        check_cells(len(membership), len(columns))
        table = np.zeros((len(membership), len(columns)))
        for row, (cells, values) in zip(table, rows, strict=True):
            row[cells] = values
        return tuple(columns), table


class CallableMechanism(FiniteMechanism):
    """A plain function from a tuple of records to {output: probability}."""

    def __init__(self, function: Callable[[Records], Law]) -> None:
        self._function: Callable[[Records], Law] = check_callable("mechanism", function)

    def law(self, records: Records) -> Law:
        """Return the function's answer."""
        return self._function(records)


def check_cells(data_sets: int, outputs: int) -> None:
    """Refuse tables that would not fit."""
    if data_sets * outputs > MAX_CELLS:
        raise InputError(
            f"mechanism must have at most {MAX_CELLS} cells (data sets × outputs), got {data_sets} × {outputs}"
        )


def _probabilities(law: Law, records: Records) -> Array:
    if not all(issubclass(kind, _NUMBERS) and kind is not bool for kind in set(map(type, law.values()))):
        raise InputTypeError(f"mechanism must give numbers as probabilities, got {dict(law)!r} on {records!r}")
    values = np.fromiter(law.values(), dtype=np.float64, count=len(law))
    if not np.all((values >= 0.0) & (values <= 1.0 + 1e-9)):
        output, wrong = next((o, p) for o, p in law.items() if not 0.0 <= p <= 1.0 + 1e-9)
        raise InputError(
            f"mechanism must give probabilities in [0, 1], got {wrong!r} for output {output!r} on {records!r}"
        )
    if abs(values.sum() - 1.0) > 1e-9:
        raise InputError(
            f"mechanism must give probabilities that sum to one, got a sum of {values.sum()!r} on {records!r}"
        )
    return values
