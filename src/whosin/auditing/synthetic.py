"""Auditing a synthetic table: training records, held-out records, and what was released."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.compare import Comparison
from whosin.auditing.estimate import Estimate
from whosin.auditing.experiment import Experiment
from whosin.auditing.groups import GroupTable
from whosin.auditing.material import Material, gather_material
from whosin.auditing.release_size import ReleaseSize, release_size
from whosin.auditing.result import Audit
from whosin.auditing.run import run_audit
from whosin.compute.proportions import difference_lower, difference_upper
from whosin.compute.rounding import at_least
from whosin.errors import AssumptionWarning, InputError, check_number
from whosin.guarantees import Guarantee
from whosin.risks import Risk

__all__ = ["SyntheticAudit", "audit_synthetic"]

Array = NDArray[np.float64]

SHIFT_LEVEL = 0.99
"""Confidence with which training and held-out records must differ before a warning."""
SHIFT_ROWS = 20_000
"""Most records of each side that the comparison looks at."""


@dataclass(frozen=True, eq=False)
class SyntheticAudit(Audit):
    """An :class:`Audit` of a released table, with what only tables have."""

    synthetic: int = 0
    """Number of released rows."""
    shared_rows: int = 0
    """Training rows that equal a held-out row in every cell."""
    copies: tuple[int, int] = (0, 0)
    """Training rows, and held-out rows, that the release contains cell by cell."""
    near_copies: tuple[int, int] | None = None
    """The same in all cells but at most one; None for arrays and for fewer than three columns."""
    records_alone: Estimate | None = None
    """Advantage of telling training from held-out records without the release: 0 if both come from one population."""
    closest: NDArray[np.int64] | None = field(default=None, repr=False)
    """For each record, members first, the released row that matches it best."""
    failed: tuple[tuple[str, str], ...] = ()
    """Queries that could not be used, with the reason."""
    fingerprints: Mapping[str, str] = field(default_factory=dict, repr=False)
    """SHA-256 of each table."""
    material: Material | None = field(default=None, repr=False)
    seed: int = field(default=0, repr=False)

    @cached_property
    def release_size(self) -> ReleaseSize | None:
        """The advantage against the number of released rows; None for a query of the caller's own."""
        if self.material is None or not self.material.by_size:
            return None
        return release_size(
            self.material.by_size, self.members, self.material.sizes, self.advantage, self.splits.seed
        )

    @cached_property
    def exposed_groups(self) -> GroupTable:
        """The most exposed groups among the categorical columns, alone and two together, confirmed on other records.

        Groups that were named in :attr:`groups` are not repeated.
        """
        return self.groups.scan({} if self.material is None else self.material.categories)

    @property
    def _draws(self) -> tuple[str, ...]:
        return (
            "the held-out rows are independent draws from the population of the training rows, and took no part in the "
            "training",
            "the limits speak of this release and its training rows: another training, or other training rows, may "
            "leak more or less",
        )

    def compare(self, guarantee: Guarantee, *, assignment: str | None = None, trainings: int = 1) -> Comparison:
        """Hold the measurement against a promise, as :meth:`Audit.compare` does.

        One release comes from one training, which cannot refute a promise: the answer is never "violated".
        """
        _check_one_training(assignment)
        if trainings != 1:
            raise InputError(f"trainings takes 1 for a release, which comes from one training, got {trainings!r}")
        return super().compare(guarantee, assignment=assignment)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        inside, outside = self.copies
        sentences = [super().explain()]
        if inside or outside:
            sentences.append(
                f" The release repeats {inside} of the {self.members} training rows cell by cell, and {outside} of the "
                f"{self.non_members} that it was not trained on."
            )
        standing = [row.name for row in (*self.groups, *self.exposed_groups) if row.stands_out]
        if standing:
            sentences.append(f" More exposed than the rest, beyond chance: {'; '.join(standing)}.")
        if self.records_alone is not None and self.records_alone.lower > 0.0:
            sentences.append(
                " Training and held-out records differ even without the release, so part of the gap may be that."
            )
        return "".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; no record, only row numbers."""
        highest = [] if self.closest is None else self._with_closest(self.individual.to_dict()["highest"])
        known = super().to_dict()
        known["individual"]["highest"] = highest or known["individual"]["highest"]
        return {
            **known,
            "synthetic": self.synthetic,
            "shared_rows": self.shared_rows,
            "copies": {"members": self.copies[0], "non_members": self.copies[1]},
            "near_copies": None
            if self.near_copies is None
            else {"members": self.near_copies[0], "non_members": self.near_copies[1]},
            "records_alone": None if self.records_alone is None else self.records_alone.to_dict(),
            "release_size": None if self.release_size is None else self.release_size.to_dict(),
            "exposed_groups": self.exposed_groups.to_dict(),
            "failed_queries": [{"query": name, "reason": why} for name, why in self.failed],
            "fingerprints": dict(self.fingerprints),
        }

    def _with_closest(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        assert self.closest is not None
        offset = {"member": 0, "non-member": self.members}
        return [{**row, "released_row": int(self.closest[offset[row["side"]] + row["index"]])} for row in rows]


def audit_synthetic(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    query: str | Callable[..., Any] | Sequence[str] = "auto",
    reference: Any = None,
    columns: Sequence[str] | None = None,
    groups: Any = None,
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    kind: str = "auto",
    confidence_level: float = 0.95,
    assignment: str = "unknown",
    block_rows: int | None = None,
    n_jobs: int | None = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> SyntheticAudit:
    """Measure what a synthetic table tells about who was in the training data.

    Parameters
    ----------
    train, holdout, synthetic : array, data frame or Table
        Rows that the generator was trained on, rows of the same population that it never saw, and the rows released.
        Frames of mixed types are encoded on the pooled rows; plain arrays of numbers are compared as they are.
        ``synthetic`` may also be the path of a Parquet or Arrow file, a polars.LazyFrame, or an iterable of frames;
        with more than 250,000 rows it is read in blocks and never held, and the answers are the same. Other files,
        CSV among them, are read into memory.
    query : str, sequence of str, or callable
        What the attacker asks about a record. For frames: "rarity_share", "rarity", "equal_cells", "nearest",
        "nearest_ratio", "copies", "density_ratio" (takes ``reference``); for arrays "nearest", "nearest_ratio", "ball",
        "ball_by_distance", "density_ratio". Several are combined by a learned score. "auto" asks all but
        "ball_by_distance"; "density_ratio" only if there is a reference. A callable gets (records, synthetic) as given
        and returns one or several numbers a record.
    reference : optional
        Further rows of the population, used in no training and none of them of the holdout.
    columns : sequence of str, optional
        The columns to use; by default all, which must then agree.
    groups : str, sequence of str, mapping or pair, optional
        Columns whose groups are reported (also columns that are not compared), or labels as in :func:`whosin.audit`.
    prior, metric, kind, confidence_level, rng
        As in :func:`whosin.audit`. ``rng`` also orders the released rows for ``release_size``.
    assignment : {"unknown", "random"}
        Whether chance decided which rows were trained on.
    block_rows : int, optional
        Read the release in blocks of so many rows, however small it is; 1,048,576 by default for those that are large.
        The answers do not depend on it; time does, as larger blocks sort better.
    n_jobs : int, optional
        Threads, as in joblib.
    progress : callable, optional
        Called with the share of the work done.

    Returns
    -------
    SyntheticAudit

    Warns
    -----
    AssumptionWarning
        If training and held-out records differ on their own, share many more rows than chance explains, or if one
        side stands in the reference more often than the other.

    Notes
    -----
    Every record is compared with every released row, exactly: O((train + holdout)·synthetic·columns) time, about 3 ns a
    pair for 15 columns and 4 ns for 40 on one core with numba, and no matrix of pairs. A release that is read in blocks
    costs a fraction of that, as blocks are sorted and what cannot beat the best row so far is passed over. Nothing that
    is learned sees who is a member, except on the part of the records that is not reported.

    What the limits speak of: the release is given, and so are the training rows, all of which are here. The share of
    the reported training rows that an attack accuses is therefore no estimate. The only chance left is that of the
    held-out rows: independent draws from the population, which neither the release nor the choice of the attack has
    seen. So the FPR is the chance that the attack accuses another row of the population, and Clopper-Pearson and
    McDiarmid apply to it given the release. The limits also leave room for chance on the side of the training rows, as
    if they were drawn: for the rows reported that only widens them, and so they hold as well if ``train`` is a random
    part of a larger training set. The rows reported are a random part of ``train``.

    Columns are encoded, rare values weighed and the radius of "ball" set on the rows of all tables together, where
    members and non-members count alike. If nothing leaks, exchanging the two sides changes none of this, so it feigns
    no leak; it ties the answers to each other through frequencies over all rows alone.
    """
    _check_one_training(assignment)
    level = check_number("confidence_level", confidence_level, low=0.0, high=1.0, open_low=True, open_high=True)
    generator = np.random.default_rng(rng)
    report = progress if progress is not None else _silent
    material = gather_material(
        train,
        holdout,
        synthetic,
        query=query,
        reference=reference,
        columns=columns,
        groups=groups,
        n_jobs=n_jobs,
        rng=generator,
        progress=lambda share: report(0.8 * share),
        block_rows=block_rows,
    )
    split = material.train_rows
    experiment = Experiment(material.answers[:split], material.answers[split:], prior, material.names, kind)
    alone = _records_alone(material, generator)
    report(0.85)
    notes = (*material.notes, *_warn(material, alone))
    seed = int(generator.integers(2**63))
    found = run_audit(
        experiment,
        metric=metric,
        confidence_level=level,
        groups=material.groups,
        assignment=assignment,
        query=material.asked,
        notes=notes,
        rng=generator,
        progress=lambda share: report(0.85 + 0.15 * share),
    )
    return SyntheticAudit(
        **{part.name: getattr(found, part.name) for part in fields(found)},
        synthetic=material.synthetic_rows,
        shared_rows=material.shared_rows,
        copies=material.copies,
        near_copies=material.near_copies,
        records_alone=alone,
        closest=material.closest,
        failed=material.failed,
        fingerprints=material.fingerprints,
        material=material,
        seed=seed,
    )


def _check_one_training(assignment: str | None) -> None:
    if assignment == "independent trainings":
        raise InputError(
            "assignment takes 'unknown' or 'random' for a release, which comes from one training, "
            "got 'independent trainings'"
        )


def _records_alone(material: Material, rng: np.random.Generator) -> Estimate | None:
    """Audit the records themselves, without the release: a two-sample test of the held-out population."""
    rows = material.records
    if rows is None or rows.shape[1] == 0 or min(material.train_rows, len(rows) - material.train_rows) < 2:
        return None
    sides = []
    for side in (rows[: material.train_rows], rows[material.train_rows :]):
        sides.append(side[np.sort(rng.permutation(len(side))[:SHIFT_ROWS])])
    return run_audit(Experiment(sides[0], sides[1], kind="continuous"), confidence_level=SHIFT_LEVEL, rng=rng).advantage


def _warn(material: Material, alone: Estimate | None) -> tuple[str, ...]:
    """Say what makes the two sides no fair comparison; loudly, if it is more than a few rows."""
    remarks, loud = [], []
    if material.shared_rows:
        loud.append(material.shared_beyond_chance)
        remarks.append(
            f"{material.shared_rows} of the {material.train_rows} training rows equal a held-out row in every cell; "
            "they count as members and as non-members"
        )
    if alone is not None and alone.lower > 0.0:
        loud.append(True)
        remarks.append(
            f"training and held-out records differ even without the release (advantage at least "
            f"{at_least(alone.lower, 3)} at {100 * SHIFT_LEVEL:g}%): the holdout is not from the same "
            "population, and the audit measures that difference too"
        )
    if _reference_tells(material):
        loud.append(True)
        inside, outside = material.in_reference
        remarks.append(
            f"{inside} training rows and {outside} held-out rows stand in the reference, which tells them apart "
            "without the release: the reference takes rows that are in neither"
        )
    for remark, is_loud in zip(remarks, loud, strict=True):
        if is_loud:
            warnings.warn(remark, AssumptionWarning, stacklevel=3)
    return tuple(remarks)


def _reference_tells(material: Material) -> bool:
    """Whether one side stands in the reference more often than the other, beyond chance."""
    inside, outside = material.in_reference
    counts = inside, material.train_rows, outside, len(material.answers) - material.train_rows
    level = (1.0 - SHIFT_LEVEL) / 2
    return bool(difference_lower(*counts, level) > 0.0 or difference_upper(*counts, level) < 0.0)


def _silent(_: float) -> None:
    return None
