"""Auditing a synthetic table: training records, held-out records, and what was released."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Flags
from whosin.auditing.measuring.audit import Audit
from whosin.auditing.measuring.compare import Comparison
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.groups import GroupTable
from whosin.auditing.measuring.individual import Individual
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.releases.chance_split import compare_by_chance
from whosin.auditing.releases.columns import RevealingColumns
from whosin.auditing.releases.copies import NO_HOLDOUT
from whosin.auditing.releases.embedding import embedded_parts
from whosin.auditing.releases.release_size import ReleaseSize, release_size
from whosin.auditing.releases.sides import Dependence, Drift, dependence, drift
from whosin.auditing.releases.tables_to_answers import FEW_LABELS, ReleaseAnswers, answer_queries
from whosin.errors import AssumptionWarning, InputError, InputTypeError, check_confidence, check_rng
from whosin.guarantees import Guarantee
from whosin.numerics.differences import gain_lower, gain_upper_of_one
from whosin.numerics.rounding import about
from whosin.parallel.threads import silent
from whosin.risks import Risk
from whosin.tables.look import Preview
from whosin.tables.roles import said
from whosin.tables.table import Places, place_of

REFERENCE_LEVEL = 0.99
"""Confidence with which one side must stand in the reference more often than the other before a warning."""
FEWEST_NUMBERS = 20
"""Fewest numbers of a column whose middle half is looked at."""


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticAudit(Audit):
    """An :class:`Audit` of a released table, with what only tables have.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    >>> found = wi.audit_synthetic(train, holdout, train[:50], query="nearest")
    >>> found.verdict.state, found.copies, found.records_alone.differs
    ('leak', (50, 0), False)
    """

    synthetic: int = 0
    """Number of released rows."""
    shared_rows: int = 0
    """Training rows that equal a held-out row in every cell."""
    copies: tuple[int, int] = (0, 0)
    """Members, and non-members, who appear in the release word for word: people or rows, as in ``person_level``."""
    near_copies: tuple[int, int] | None = None
    """The same in all cells but at most one; None for arrays and for fewer than three columns."""
    records_alone: Drift | None = None
    """Whether training and held-out records differ without the release; None where that was not looked at."""
    dependence: Dependence | None = None
    """Whether rows repeat each other within a side, or across the sides."""
    closest: NDArray[np.int64] | None = field(default=None, repr=False)
    """For each record (or person), members first, the released row that matches it best."""
    failed: tuple[tuple[str, str], ...] = ()
    """Queries that could not be used, with the reason."""
    fingerprints: Mapping[str, str] = field(default_factory=dict, repr=False)
    """SHA-256 of each table."""
    _material: ReleaseAnswers | None = field(default=None, repr=False)

    @property
    def copies_by_chance(self) -> float:
        """How many members would appear word for word if they did so as often as outsiders do."""
        return self.copies[1] * self.members / self.non_members

    @cached_property
    def release_size(self) -> ReleaseSize | None:
        """The advantage against the number of released rows; None for a query of the caller's own."""
        if self._material is None or not self._material.by_size:
            return None
        answers = {name: _pooled(self._splits.experiment, table) for name, table in self._material.by_size.items()}
        return release_size(answers, self.members, self._material.sizes, self.advantage, self._splits.seed)

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns that were not compared because they are no attributes, with the reason."""
        return {} if self._material is None else self._material.left_out

    @property
    def preview(self) -> Preview | None:
        """What the tables hold, as :func:`whosin.tables.look` says it; None for arrays."""
        return None if self._material is None else self._material.preview

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were compared."""
        return () if self._material is None or self._material.pool is None else self._material.pool.names

    @cached_property
    def revealing_columns(self) -> RevealingColumns | None:
        """The advantage that is lost when one column is hidden, from a sample and without limits.

        None where no leak was shown, for one column or more than 100, and for a release that is read in blocks.
        """
        compared = None if self._material is None else self._material.compared
        if compared is None or self.advantage.lower <= 0.0:
            return None
        return compared.revealing(np.random.default_rng(self._splits.seed))

    @cached_property
    def individual(self) -> Individual:
        """The risk of every record that was asked about; ``index`` is its row in the table that was given."""
        found = super().individual
        if self._material is None or self._material.counted is None or self.person_level:
            return found
        return replace(found, index=np.append(found.index[found.member], self._material.counted))

    @property
    def set_aside(self) -> int:
        """How many held-out rows served as reference and were not counted."""
        return 0 if self._material is None else self._material.set_aside

    @cached_property
    def exposed_groups(self) -> GroupTable:
        """The most exposed groups among the categorical columns, alone and two together, confirmed on other records.

        Groups that were named in :attr:`groups` are not repeated.
        """
        return self.groups.scan({} if self._material is None else self._material.categories)

    @property
    def _draws(self) -> tuple[str, ...]:
        return (
            f"the held-out {'people' if self.person_level else 'rows'} are independent draws from the population of "
            "the training data, and took no part in the training",
            *self._units,
            "the limits speak of this release and its training rows: another training, or other training rows, may "
            "leak more or less",
        )

    @property
    def _assigned(self) -> str:
        if self.assignment != "unknown" or self.records_alone is None:
            return super()._assigned
        if self.records_alone.differs:
            return "training and held-out records were compared without the release, and they differ"
        return (
            "training and held-out records were compared without the release, and no difference was found; one too "
            "small to be seen would count as a leak"
        )

    @property
    def _caveat(self) -> str:
        return "" if self.records_alone is None else self.records_alone.sentence

    def compare(self, guarantee: Guarantee, *, assignment: str | None = None, trainings: int = 1) -> Comparison:
        """Hold the measurement against a promise, as :meth:`Audit.compare` does.

        One release comes from one training, which refutes a promise only where chance decided who was trained on: then
        every record is a canary (:mod:`whosin.auditing.releases.chance_split`), the answer may be "violated", and
        ``epsilon_lower`` is a limit on the ε of the training. A release that repeats held-out rows allows no verdict,
        but it may refute a promise: coins are coins, whatever the release does with those of records left out.
        """
        _check_one_training(assignment)
        if trainings != 1:
            raise InputError(f"trainings must be 1 for a release, which comes from one training, got {trainings!r}")
        found = super().compare(guarantee, assignment=assignment)
        if found.assignment == "unknown" or not self._sides_hold:
            return found
        coins, experiment = found.assignment == "coins", self._splits.experiment
        tested = compare_by_chance(experiment, guarantee, coins=coins, alpha=self._delta, seed=self._splits.seed)
        if tested is None:
            return found
        violated = tested.verdict == "violated"
        return replace(
            found,
            verdict="violated" if violated else found.verdict,
            text=tested.text if violated else f"{found.text} Chance decided who was trained on: {tested.text}",
            epsilon_lower=tested.epsilon_lower,
            delta=tested.delta,
        )

    @property
    def _sides_hold(self) -> bool:
        """Whether nothing but the release speaks against the two sides."""
        if self._material is None:
            return self.problem is None
        return self._material.sides_problem is None and not (self.dependence is not None and self.dependence.found)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert, the verdict first."""
        inside, outside = self.copies
        sentences = [super().explain()]
        if inside or outside:
            sentences.append(
                f" {inside} of {self.members} members and {outside} of {self.non_members} outsiders appear in the "
                f"release word for word; chance alone would give about {about(self.copies_by_chance)} of the members."
            )
        standing = [row.name for row in (*self.groups, *self.exposed_groups) if row.stands_out]
        if standing and self.problem is None:
            sentences.append(f" More exposed than the rest, beyond chance: {'; '.join(standing)}.")
        for finding in (self.records_alone, self.dependence):
            said = "" if finding is None else finding.sentence
            if said and said != self.problem and said not in sentences[0]:
                sentences.append(f" {said}")
        return "".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; no record, only row numbers."""
        known = super().to_dict()
        known["individual"]["highest"] = self._located(known["individual"]["highest"])
        revealing = self.revealing_columns
        return {
            **known,
            "synthetic": self.synthetic,
            "columns": list(self.columns),
            "left_out": dict(self.left_out),
            "preview": None if self.preview is None else self.preview.to_dict(),
            "revealing_columns": None if revealing is None else revealing.to_dict(),
            "shared_rows": self.shared_rows,
            "set_aside": self.set_aside,
            "copies": {
                "members": self.copies[0],
                "non_members": self.copies[1],
                "members_by_chance": self.copies_by_chance,
            },
            "near_copies": None
            if self.near_copies is None
            else {"members": self.near_copies[0], "non_members": self.near_copies[1]},
            "records_alone": None if self.records_alone is None else self.records_alone.to_dict(),
            "dependence": None if self.dependence is None else self.dependence.to_dict(),
            "release_size": None if self.release_size is None else self.release_size.to_dict(),
            "exposed_groups": self.exposed_groups.to_dict(),
            "failed_queries": [{"query": name, "reason": why} for name, why in self.failed],
            "fingerprints": dict(self.fingerprints),
        }

    def _located(self, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what is said of members with where they stand, and the released row that is closest to each."""
        train, _, released = (self._material.places if self._material is not None else ()) or (None, None, None)
        found = [
            {**row, "place": str(row["person"]) if "person" in row else _called(train, row["index"])} for row in members
        ]
        if self.closest is None:
            return found
        nearest = [int(self.closest[row["index"]]) for row in members]
        return [
            {**row, "released_row": near, "released_place": _called(released, near)}
            for row, near in zip(found, nearest, strict=True)
        ]


def audit_synthetic(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    query: str | Callable[..., Any] | Sequence[str] = "auto",
    reference: Any = "auto",
    scores: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    categories: Sequence[str] = (),
    embed: Callable[[list[Any]], Any] | None = None,
    groups: Any = None,
    prior: float = 0.5,
    metric: str | Risk = "advantage",
    kind: str = "auto",
    confidence_level: float = 0.95,
    assignment: str = "unknown",
    person: Any = None,
    tolerate: float | None = None,
    block_rows: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    rng: Any = None,
    progress: Callable[[float], None] | None = None,
) -> SyntheticAudit:
    """Measure what a synthetic table tells about who was in the training data.

    Parameters
    ----------
    train, holdout, synthetic : array, data frame, Table or path
        Rows that the generator was trained on, rows of the same population that it never saw, and the rows released.
        Frames of mixed types are encoded with frequencies and scales of the release and the reference; plain arrays
        and lists of numbers are compared as they are. ``synthetic`` may also be the path of a Parquet or Arrow file, a
        polars.LazyFrame, or an iterable of frames; with more than 250,000 rows it is read in blocks and never held, and
        the answers are the same. So are text files of more than 256 MB; other files are read into memory.
    query : str, sequence of str, or callable, default "auto"
        What the attacker asks about a record. For frames: "soft_rarity_share", "soft_rarity", "rarity_share", "rarity",
        "equal_cells", "rarity_run" (of neighbouring columns), "nearest", "nearest_ratio", "copies", "repeated_values"
        (column by column), "repeated_keys" (of columns left out as keys or texts), and against a ``reference``
        "density_ratio", "marginal_ratio", "joint_ratio", "classifier", "soft_rarity_gain", "rarity_gain"; for arrays
        "nearest", "nearest_ratio", "ball", "ball_by_distance", "density_ratio". Several are combined by a learned
        score; those named first have more of the error of the limits, and the first two compete with the combination
        by themselves. "auto" asks all but "equal_cells", "ball_by_distance", "soft_rarity_gain" and "rarity_gain". A
        callable gets (records, synthetic) as given and returns one or several numbers per record.
    reference : array, data frame, Table, path, "auto" or None, default "auto"
        Further rows of the population, used in no training and none of them of the holdout. "auto": where ``query`` is
        "auto" too and there are at least twice as many held-out as training rows, some of these serve as reference and
        are not counted (:mod:`whosin.auditing.releases.set_aside`); frames only, and only for ``assignment="unknown"``.
        None: no reference.
    scores : mapping, optional
        Attacks of your own to ask beside ``query``: a name, and a pair of arrays, one number for each row of train and
        of holdout, fixed by that row and the release alone. Larger ones must speak for membership.
    columns : sequence of str, optional
        The columns to use, exactly these; by default all that are attributes (:mod:`whosin.tables.roles`), which must
        then agree. ``left_out`` names the others, row numbers and keys among them, with the reason.
    ignore, keep : sequence of str, optional
        Columns to leave out, and columns to compare although they look like no attributes.
    categories : sequence of str, optional
        Columns to take as labels although they look like numbers.
    embed : callable, optional
        For texts and images: from a list of texts, or of paths, to as many rows of numbers, which are then compared as
        arrays. Each table is a folder of files, a list of items, or a table with one column of texts, named by
        ``columns``. None is shipped; :func:`whosin.tables.phrase_scores` finds copied phrases without any.
    groups : str, sequence of str, mapping or pair, optional
        Columns whose groups are reported (also columns that are not compared), or labels as in :func:`whosin.audit`.
    prior, metric, kind, confidence_level, tolerate, rng
        As in :func:`whosin.audit`. ``rng`` also orders the released rows for ``release_size``; by default it is taken
        from the fingerprints of the tables.
    person : str or pair of arrays, optional
        The column of train and holdout that says whose a row is, which is then not compared, or identifiers of the
        training and of the held-out rows. Several rows of one person count once. If the release has the column too,
        "repeated_keys" asks which people it repeats, unless people are only numbered.
    assignment : {"unknown", "random", "coins"}, default "unknown"
        Whether chance decided which rows (or people) were trained on: "random" if they were drawn from all rows here,
        "coins" if a fair coin of its own decided on each. Then ``compare`` can refute a promise of differential
        privacy: under replacement of a row, and with "coins" under adding or removing one too.
    block_rows : int, optional
        Read the release in blocks of so many rows, however small it is; 1,048,576 by default for those that are large.
        The answers do not depend on it; time does, as larger blocks sort better.
    journal : path, optional
        A file that keeps what each block of the release said, so that a run that was interrupted goes on from there.
        The release is then read in blocks, however small it is.
    n_jobs : int, optional
        Threads, as in joblib; under a backend of joblib that reaches other machines, its workers.
    progress : callable, optional
        Called with the share of the work done.

    Returns
    -------
    SyntheticAudit

    Warns
    -----
    AssumptionWarning
        If the set-up allows no verdict (the holdout was not held out, or rows on one side repeat each other), if
        training and held-out records differ on their own, or if one side stands in the reference more often than the
        other.

    Notes
    -----
    Every record is compared with every released row, exactly: O((train + holdout)·synthetic·columns) time, about 3 ns a
    pair for 15 columns and 4 ns for 40 on one core with numba, and no matrix of pairs. A release that is read in blocks
    costs a fraction of that, as blocks are sorted and what cannot beat the best row so far is passed over. A reference
    costs as much again for its rows, always in memory; "marginal_ratio", "joint_ratio" and "classifier" look at no more
    than 20,000 rows of either and take about a second. Nothing that is learned sees who is a member, except on the part
    of the records that is not reported.

    What the limits speak of: the release is given, and so are the training rows, all of which are here. The share of
    the reported training rows that an attack accuses is therefore no estimate. The only chance left is that of the
    held-out rows: independent draws from the population, which neither the release nor the choice of the attack has
    seen. So the FPR is the chance that the attack accuses another row of the population. The limits treat the training
    rows as draws too, and hold in that sense; so they also hold if ``train`` is a random part of a larger training set.
    Of exactly these training rows, the chance of error of a single limit can be up to twice the stated one where very
    few rows are held out (300 + 8 rows: .039 instead of .025).

    Frequencies of values, scales of numbers and the radius of "ball" come from the release and the reference, never
    from the records: given these two, an answer about a record is a function of that record alone, so the answers about
    held-out rows are independent draws whichever threshold they are counted at. A value that neither has counts as
    rarer than all they have. Without a reference that costs some power (section 13 of the theory): few released rows
    cannot tell how rare a rare value is.

    Examples
    --------
    A "synthetic" table that is the training data with a little noise, and one that is drawn anew:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> train, holdout, other = (rng.normal(size=(100, 3)) for _ in range(3))
    >>> for release in (train + rng.normal(0, 0.1, (100, 3)), other):
    ...     print(wi.audit_synthetic(train, holdout, release, query="nearest").verdict.state)
    leak
    none found
    """
    _check_one_training(assignment)
    level = check_confidence(confidence_level)
    if holdout is None:
        raise InputError(f"holdout is missing. {NO_HOLDOUT}")
    report = progress if progress is not None else silent
    spare = isinstance(reference, str) and reference == "auto"
    seen: tuple[str, ...] = ()
    if embed is not None:
        given = {"ignore": ignore, "keep": keep, "categories": categories, "block_rows": block_rows, "journal": journal}
        extra = next((name for name, value in given.items() if value), None)
        if extra is not None:
            raise InputTypeError(f"{extra} must be left out with embed: vectors have no columns of that kind")
        parts = train, holdout, synthetic, None if spare else reference
        (train, holdout, synthetic, vectors), groups, person, places = embedded_parts(
            parts, embed, columns, groups, person
        )
        reference, columns = reference if spare else vectors, None
        called = getattr(embed, "__name__", type(embed).__name__)
        seen = (f"items are compared by {train.shape[1]} numbers each, those of {called}",)
    material = answer_queries(
        train,
        holdout,
        synthetic,
        query=query,
        reference=None if spare else reference,
        spare=spare and assignment == "unknown",
        columns=columns,
        ignore=ignore,
        keep=keep,
        categories=categories,
        groups=groups,
        n_jobs=n_jobs,
        rng=None if rng is None else check_rng(rng),
        progress=lambda share: report(0.7 * share),
        block_rows=block_rows,
        journal=journal,
        person=person,
    )
    material = material.asked_too(scores)
    if embed is not None:
        material = replace(material, places=places[:3])
    split = material.train_rows
    experiment = Experiment(
        material.answers[:split],
        material.answers[split:],
        prior,
        material.names,
        kind,
        person=material.person,
        directed=material.directed,
    )
    alike, alone = _sides(material, experiment)
    report(0.8)
    problem = material.problem or (alike.sentence if alike is not None and alike.found else None)
    found = run_audit(
        experiment,
        metric=metric,
        confidence_level=level,
        groups=material.groups,
        assignment=assignment,
        query=material.asked,
        notes=(
            *seen,
            *said(material.left_out),
            *material.notes,
            *_remarks(material, alike, alone, problem),
            *_seeded(rng),
        ),
        tolerate=tolerate,
        problem=problem,
        rng=material.chance,
        progress=lambda share: report(0.8 + 0.2 * share),
    )
    copies = [_count(experiment, flags) for flags in (material.copied, material.nearly_copied)]
    return SyntheticAudit(
        **{part.name: getattr(found, part.name) for part in fields(found)},
        synthetic=material.synthetic_rows,
        shared_rows=material.shared_rows,
        copies=copies[0] or (0, 0),
        near_copies=copies[1],
        records_alone=alone,
        dependence=alike,
        closest=_closest(experiment, material),
        failed=material.failed,
        fingerprints=material.fingerprints,
        _material=material,
    )


def _sides(material: ReleaseAnswers, experiment: Experiment) -> tuple[Dependence | None, Drift | None]:
    """Compare the two sides without the release. Rows that repeat each other would pass for a difference."""
    pool, people = material.pool, experiment.people
    if material.sides_problem is not None or pool is None or min(pool.split, pool.size - pool.split) < 2:
        return None, None
    if people is not None:
        pool = replace(pool, people=np.concatenate([people[0].number, len(people[0]) + people[1].number]))
    alike = dependence(pool, material.chance)
    return alike, None if alike.found or material.problem is not None else drift(pool, material.chance)


def _pooled(experiment: Experiment, table: NDArray[Any]) -> NDArray[Any]:
    """The largest answer of each person's records, training side first; the answers themselves without people."""
    if experiment.people is None:
        return table
    sides = np.split(table, [len(experiment.people[0].number)])
    return np.concatenate([who.pooled(side, "largest") for who, side in zip(experiment.people, sides, strict=True)])


def _count(experiment: Experiment, flags: Flags | None) -> tuple[int, int] | None:
    """How many of the members and of the non-members are flagged, by any of their records."""
    if flags is None:
        return None
    pooled = _pooled(experiment, flags)
    split = len(experiment.members)
    return int(pooled[:split].sum()), int(pooled[split:].sum())


def _called(places: Places | Sequence[str] | None, row: int) -> str:
    """Say which row it is: its line in a file, the name of a file in a folder, or its number."""
    return place_of(places, row) if places is None or isinstance(places, Places) else str(places[row])


def _closest(experiment: Experiment, material: ReleaseAnswers) -> NDArray[np.int64] | None:
    """The released row that matches each record best; of a person, that of the record with the largest first answer."""
    if material.closest is None or experiment.people is None:
        return material.closest
    split = material.train_rows
    sides = zip(experiment.people, (slice(None, split), slice(split, None)), strict=True)
    return np.concatenate([material.closest[side][who.leading(material.answers[side, 0])] for who, side in sides])


def _seeded(rng: Any) -> tuple[str, ...]:
    if rng is not None:
        return ()
    return ("all random choices are seeded by the fingerprints of the tables: the same tables give the same answer",)


def _check_one_training(assignment: str | None) -> None:
    if assignment == "independent trainings":
        raise InputError(
            "assignment must be 'unknown', 'random' or 'coins' for a release, which comes from one training, "
            "got 'independent trainings'"
        )


def _remarks(
    material: ReleaseAnswers, alike: Dependence | None, alone: Drift | None, problem: str | None
) -> tuple[str, ...]:
    """Say what makes the two sides no fair comparison; loudly, if it is more than a few equal rows."""
    loud = [] if problem is None else [problem]
    loud += [found.sentence for found in (alike, alone) if found is not None and found.sentence not in ("", problem)]
    if material.problem is None and _reference_tells(material):
        inside, outside = material.in_reference
        loud.append(
            f"{inside} training rows and {outside} held-out rows appear in the reference, which tells them apart "
            "without the release: the reference must have rows that are in neither"
        )
    loud += [*_foreign_labels(material), *_other_units(material), *_far_numbers(material)] if problem is None else []
    for remark in loud:
        warnings.warn(remark, AssumptionWarning, stacklevel=3)
    if material.shared_rows:
        loud.append(
            f"{material.shared_rows} of the {material.train_rows} training rows equal a held-out row in every cell; "
            "they count as members and as non-members"
        )
    if material.set_aside:
        rows = len(material.answers) - material.train_rows + material.set_aside
        loud.append(
            f"{material.set_aside} of the {rows} held-out rows, drawn at random, served as reference and were not "
            "counted"
        )
    return tuple(loud)


def _foreign_labels(material: ReleaseAnswers) -> list[str]:
    """Say which columns of few labels have none in the release that the training rows have."""
    if material.preview is None:
        return []
    names = [
        column["name"]
        for column in material.preview.columns
        if "synthetic" in column["apart"] and FEW_LABELS * column["different"] <= material.train_rows
    ]
    return [
        f"The release has no label of {name!r} that the training rows have: if it is the same written in another way, "
        "copies go unseen; write it in one way, or leave the column out."
        for name in names
    ]


def _other_units(material: ReleaseAnswers) -> list[str]:
    """Say that files of training rows and release, which both have units behind numbers, do not have the same."""
    tables = () if material.preview is None else material.preview.tables
    said = (" is left out in ", " makes hundredths in ")
    units = {table["role"]: [note for note in table["notes"] if any(map(note.count, said))] for table in tables}
    own, released = units.get("train", []), units.get("synthetic", [])
    if not own or not released or set(own) == set(released):
        return []
    return [
        f"Units of numbers differ: {'; '.join(own)} in the training rows, {'; '.join(released)} in the release. Copies "
        "go unseen where numbers are in another unit; write both in one unit."
    ]


def _far_numbers(material: ReleaseAnswers) -> list[str]:
    """Say in which columns the middle half of the released numbers does not meet that of the training rows."""
    seen = material.compared
    if seen is None or material.preview is None:
        return []
    remarks = []
    for name, own, released, numeric in zip(seen.names, seen.records, seen.released, seen.numeric, strict=True):
        if numeric:
            (low, high), (below, above) = _quartiles(own[: seen.split]), _quartiles(released)
            if low < high and (high < below or above < low):
                remarks.append(
                    f"Most numbers of {name!r} in the release are {'larger' if high < below else 'smaller'} than most "
                    "in the training rows: if they are in another unit, copies go unseen; write both in one unit."
                )
    return remarks


def _quartiles(numbers: NDArray[Any]) -> tuple[float, float]:
    """The two ends of the middle half; NaN of too few numbers."""
    known = numbers[~np.isnan(numbers)]
    low, high = np.quantile(known, (0.25, 0.75)) if len(known) >= FEWEST_NUMBERS else (np.nan, np.nan)
    return float(low), float(high)


def _reference_tells(material: ReleaseAnswers) -> bool:
    """Whether one side stands in the reference more often than the other, beyond chance."""
    inside, outside = material.in_reference
    counts = inside, material.train_rows, outside, len(material.answers) - material.train_rows
    level = (1.0 - REFERENCE_LEVEL) / 2
    return gain_lower(*counts, level) > 0.0 or gain_upper_of_one(*counts, level) < 0.0
