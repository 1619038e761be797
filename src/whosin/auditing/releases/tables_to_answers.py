"""From three tables to answers: matching columns, encoding, and asking the queries about every record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.auditing.measuring.asking import given_scores
from whosin.auditing.measuring.groups import Coded
from whosin.auditing.measuring.people import people_of
from whosin.auditing.measuring.splits import seed_of
from whosin.auditing.releases.columns import ComparedColumns
from whosin.auditing.releases.queries import Answers, ask
from whosin.auditing.releases.queries import arrays as array_queries
from whosin.auditing.releases.queries import tables as table_queries
from whosin.auditing.releases.queries.contrast import Contrast, sample_of
from whosin.auditing.releases.queries.keys import RepeatedKeys, key_codes, repeated_keys
from whosin.auditing.releases.release_size import sizes_up_to
from whosin.auditing.releases.set_aside import Aside, number_aside, set_aside
from whosin.auditing.releases.sides import Pool, holdout_problem
from whosin.auditing.releases.streamed import match_stream, size_classes
from whosin.errors import InputError, InputTypeError
from whosin.parallel.threads import Progress, number_of_threads
from whosin.tables import (
    Table,
    TableEncoder,
    TableStream,
    as_stream,
    as_table,
    is_streamable,
    match_tables,
    numeric_records,
    read_table,
)
from whosin.tables.columns import Column
from whosin.tables.levels import row_ids
from whosin.tables.look import Preview, preview_of
from whosin.tables.reading import TEXT, file_ending
from whosin.tables.roles import ColumnChoice, as_numbers, key_columns, person_column
from whosin.tables.stream import BLOCK_ROWS, is_blockwise
from whosin.tables.table import Places

Labels = dict[str, Coded]

MOST_CATEGORIES = 50
"""Most values of a column that is searched for exposed groups."""
FEW_LABELS = 10
"""Rows for each label on average, so that rows of one population share some."""
MOST_LABELS = 20
"""Numbers with more different values are cut at their quartiles to make groups."""
STREAMED_FROM = 250_000
"""Files, lazy frames and frames from an iterable with more rows than this are read in blocks."""
READING = 0.1
"""Share of the work that is reading the columns of a streamed release, for the progress bar."""


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of the tables, and how, as the caller said it."""

    query: Any
    choice: ColumnChoice
    groups: Any
    person: Any
    threads: int
    rng: np.random.Generator | None
    progress: Progress
    spare: bool
    """Whether some held-out rows may serve as reference."""
    journal: Any

    def chance(self, fingerprints: Mapping[str, str]) -> np.random.Generator:
        """Return the caller's generator, or one that depends on the tables alone."""
        return self.rng if self.rng is not None else np.random.default_rng(seed_of(*fingerprints.values()))


@dataclass(frozen=True, eq=False)
class ReleaseAnswers:
    """What the queries answered about every record, training rows first, and what else the tables say."""

    train_rows: int
    synthetic_rows: int
    names: tuple[str, ...]
    answers: Array
    asked: str
    """The queries, in words."""
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    groups: Any = None
    categories: Labels = field(default_factory=dict)
    """Categorical columns to search for groups."""
    pool: Pool | None = None
    """The records, for comparing both sides without the release."""
    person: tuple[NDArray[Any], NDArray[Any]] | None = None
    """Whose each record is."""
    shared_rows: int = 0
    in_reference: tuple[int, int] = (0, 0)
    """Training rows, and held-out rows, that appear in the reference word for word."""
    problem: str | None = None
    """Why the held-out rows were not held out."""
    sides_problem: str | None = None
    """The same, as far as the two sides and the reference say it without the release."""
    copied: Flags | None = None
    """Which records the release repeats word for word."""
    nearly_copied: Flags | None = None
    """Which it repeats in all cells but at most one; None for arrays and for fewer than three columns."""
    directed: bool = True
    """Whether larger answers are known to speak for membership."""
    closest: NDArray[np.int64] | None = None
    sizes: tuple[int, ...] = ()
    by_size: Mapping[str, Array] = field(default_factory=dict)
    """By query one answer a record (rows) and size of the release (columns)."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are no attributes, with the reason."""
    preview: Preview | None = None
    """What the tables hold; None for arrays."""
    places: Sequence[Places | Sequence[str] | None] = ()
    """Where the training rows, the held-out rows and the released rows stand, or what they are called, if known."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    chance: np.random.Generator = field(default_factory=np.random.default_rng)
    """For all random choices; seeded by the fingerprints unless the caller brought one."""
    compared: ComparedColumns | None = None
    """The columns of records and release, to hide one at a time; None for a release that is read in blocks."""
    counted: NDArray[np.int64] | None = None
    """The held-out rows that were asked about, where the others served as reference."""
    set_aside: int = 0
    """How many served as reference."""

    def asked_too(self, scores: Any) -> ReleaseAnswers:
        """Return these answers and, after them, the caller's own scores of all rows."""
        split = self.train_rows
        sizes = split, len(self.answers) - split + self.set_aside
        found = given_scores(scores, sizes, (*table_queries.QUERIES, *array_queries.QUERIES, *self.names))
        if not found:
            return self
        rows = np.arange(sum(sizes)) if self.counted is None else np.append(np.arange(split), split + self.counted)
        own = np.column_stack([*found.values()])[rows]
        names = *self.names, *found
        return replace(
            self,
            names=names,
            answers=np.column_stack([self.answers, np.where(np.isnan(own), -np.inf, own)]),
            asked=f"a learned combination of {', '.join(names)}",
        )


def answer_queries(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    query: Any,
    reference: Any,
    columns: Sequence[str] | None,
    groups: Any,
    n_jobs: int | None,
    rng: np.random.Generator | None,
    progress: Callable[[float], None],
    block_rows: int | None = None,
    person: Any = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    categories: Sequence[str] = (),
    spare: bool = False,
    journal: Any = None,
) -> ReleaseAnswers:
    """Check the tables against each other and answer the queries about every record.

    With ``spare``, some rows of a large holdout serve as reference (:mod:`whosin.auditing.releases.set_aside`) where
    tables have none, if the query is "auto" and groups are none, or columns.
    """
    spare = spare and query == "auto" and (groups is None or isinstance(groups, str) or _is_list_of_names(groups))
    choice, threads = ColumnChoice(columns, ignore, keep), number_of_threads(n_jobs)
    asked = _Question(query, choice, groups, person, threads, rng, progress, spare, journal)
    if journal is not None and block_rows is None:
        block_rows = BLOCK_ROWS
    train, holdout, reference = (_read(part, categories) for part in (train, holdout, reference))
    if hasattr(reference, "__len__") and len(reference) == 1:
        raise InputError("reference must have at least two rows, got one")
    if isinstance(synthetic, str | Path) and block_rows is None and not is_blockwise(Path(synthetic)):
        synthetic = read_table(synthetic, categories=categories)
    if block_rows is not None or is_streamable(synthetic):
        text = isinstance(synthetic, str | Path) and file_ending(Path(synthetic)) in TEXT
        stream = _opened(synthetic, block_rows, categories if text else ())
        if stream.rows > STREAMED_FROM or block_rows is not None:
            if callable(query):
                raise InputTypeError("query must be names for a release that is read in blocks, got a function")
            numbers = [] if text else [name for name in categories if not _is_text(stream, name)]
            if numbers:
                raise InputError(
                    f"categories must be text in a release that is read in blocks, got {numbers[0]!r}: write it so"
                )
            synthetic = stream
        else:
            synthetic = stream.table()
    given = [train, holdout, synthetic] + ([] if reference is None else [reference])
    if columns is None and not categories and all(is_plain(part) for part in given):
        return _from_arrays(given, asked)
    tables = [
        part if isinstance(part, TableStream) else as_table(part, name, categories=categories)
        for part, name in zip(given, _NAMES, strict=False)
    ]
    return _from_tables(given, tables, asked)


def _read(part: Any, categories: Sequence[str]) -> Any:
    """Read a table that is given by its path."""
    return read_table(part, categories=categories) if isinstance(part, str | Path) else part


def _person(person: Any, tables: Mapping[str, Table]) -> Any:
    """Whose each record of train and holdout is: the values of a column, or identifiers that were given as such."""
    if not isinstance(person, str):
        return person
    sides = tables["train"], tables["holdout"]
    for table in sides:
        if person not in table.names:
            raise InputError(
                f"person must be a column of train and of holdout, got {person!r}; {table.origin} has "
                f"{', '.join(table.names)}"
            )
    return tuple(table.column(person) for table in sides)


def _without(table: Any, person: Any) -> Any:
    """Leave the column that says whose a row is out of what is compared, of a table or a stream."""
    return table.without(person) if isinstance(person, str) and person in table.names else table


def _is_text(stream: TableStream, name: str) -> bool:
    import polars as pl

    return bool(stream.dtypes.get(name, pl.String()) == pl.String)


def _opened(synthetic: Any, block_rows: int | None, categories: Sequence[str]) -> TableStream:
    """Return a release that can be read in blocks."""
    if not is_streamable(synthetic):
        synthetic = [synthetic]
    size = BLOCK_ROWS if block_rows is None else block_rows
    return as_stream(synthetic, "synthetic", block_rows=size, categories=categories)


def _from_arrays(given: list[Any], asked: _Question) -> ReleaseAnswers:
    query, groups, person = asked.query, asked.groups, asked.person
    if isinstance(person, str):
        raise InputTypeError("person must be a pair of arrays of identifiers with arrays: they have no column names")
    named = zip(given, _NAMES, strict=False)
    flat = [numeric_records(_rows(np.asarray(part), name), name, at_least=1) for part, name in named]
    for part, name in zip(flat[1:], _NAMES[1:], strict=False):
        if part.shape[1] != flat[0].shape[1]:
            raise InputError(f"{name} must have {flat[0].shape[1]} columns like train, got {part.shape[1]}")
    if groups is not None and (isinstance(groups, str) or _is_list_of_names(groups)):
        raise InputTypeError("groups must be labels of members and non-members with arrays: they have no column names")
    tables = [as_table(part, name) for part, name in zip(flat, _NAMES, strict=False)]
    # the caller's own function sees the records as they are, whatever their columns look like
    columns, left = ([*tables[0].names], {}) if callable(query) else asked.choice.among(tables[:2], tables[2:])
    if left:
        places = [tables[0].names.index(name) for name in columns]
        tables, flat = [table.select(columns) for table in tables], [part[:, places] for part in flat]
    targets, split = np.concatenate(flat[:2]), len(flat[0])
    prints = _fingerprints(tables)
    chance = asked.chance(prints)
    order = chance.permutation(len(flat[2]))
    release = array_queries.ArrayRelease(
        targets,
        flat[2][order],
        reference=flat[3] if len(flat) > 3 else None,
        prefixes=None if callable(query) else sizes_up_to(len(flat[2])),
        n_jobs=asked.threads,
        progress=asked.progress,
    )
    answers = _answers(release, array_queries, query, given, split, referring=len(given) > 3)
    rows = _row_numbers(flat)
    common: dict[str, Any] = {
        **_about_rows(dict(zip(_NAMES, rows, strict=False)), prints, chance),
        "left_out": left,
        "pool": Pool(split, tuple(columns), rows=targets, n_jobs=asked.threads),
        "copied": np.isin(np.concatenate(rows[:2]), rows[2]),
        "groups": groups,
        "person": person,
    }
    names = common["pool"].names
    common["compared"] = ComparedColumns(names, [*targets.T], [*flat[2].T], [True] * len(names), split)
    if not callable(query):
        common |= {
            "closest": order[release.nearest_row],
            "sizes": release.prefixes,
            "by_size": release.by_size(),
        }
    return _material(answers, split, len(flat[2]), query, array_queries.QUERIES, common)


def _from_tables(given: list[Any], tables: Sequence[Table | TableStream], asked: _Question) -> ReleaseAnswers:
    """Answer from tables of which the release, the third, may be read in blocks."""
    query, person = asked.query, asked.person
    held = {role: table for role, table in zip(_NAMES, tables, strict=False) if isinstance(table, Table)}
    compared: list[Any] = [_without(table, person) for table in tables]
    columns, left = asked.choice.among(compared[:2], compared[2:])
    who = _person(person, held)
    aside = _aside(compared, columns, who, asked.rng) if asked.spare and len(tables) == 3 else None
    parts = compared if aside is None else [*compared, compared[1].take(aside.rows)]
    before = 0.0 if "synthetic" in held else READING
    encoder = TableEncoder.fit(
        *parts, learn_from=parts[2:], columns=columns, progress=lambda share: asked.progress(before * share)
    )
    matched: list[Any] = [*encoder.tables]
    prints = _fingerprints(matched[: len(tables)])
    chance = asked.chance(prints)
    cells: list[Any] = [encoder.transform(table) if isinstance(table, Table) else None for table in matched]
    records, targets = _counted_of(matched, aside), np.concatenate(_counted_of(cells, aside))
    sizes, classes = size_classes(matched[2].rows, chance)
    order = np.argsort(classes, kind="stable") if "synthetic" in held else None
    frequencies, (numbers, ranks) = encoder.frequencies, column_numbers(encoder)
    keyed = [*key_columns(left, compared[:3]), *person_column(person, tables)]
    keys = repeated_keys(_counted_of(tables, aside), tables[2], keyed)

    def contrast() -> Contrast:
        return Contrast(records, *(table.take(_sample(table.rows, prints)) for table in matched[2:4]))

    def matching(share: float) -> None:
        asked.progress(before + (1.0 - before) * share)

    matches = None
    if order is None:
        weights = table_queries.rarity_weights(frequencies)
        matches = match_stream(
            matched[2],
            encoder,
            targets,
            weights,
            numbers,
            ranks,
            classes,
            n_jobs=asked.threads,
            progress=matching,
            journal=asked.journal,
        )
    release = table_queries.TableRelease(
        targets,
        None if order is None else cells[2][order],
        frequencies,
        numbers,
        ranks,
        reference_cells=cells[3] if len(cells) > 3 else None,
        reference_tables=contrast if len(cells) > 3 else None,
        repeated_keys=None if keys is None else keys.rarity,
        prefixes=None if callable(query) else sizes,
        given=matches,
        given_counts=[one for one in encoder.streamed if one is not None] if order is None else None,
        n_jobs=asked.threads,
        progress=matching,
    )
    split = len(tables[0])
    ways = {"referring": len(cells) > 3, "keyed": keys is not None}
    answers = _answers(release, table_queries, query, given, split, **ways)
    rows = dict(zip(held, _row_numbers([part for part in cells[: len(tables)] if part is not None]), strict=True))
    common: dict[str, Any] = {
        "left_out": left,
        "preview": preview_of(dict(zip(_NAMES, tables, strict=False)), left, columns, rows, person),
        "places": [table.places if isinstance(table, Table) else None for table in tables[:3]],
        "closest": release.closest if order is None else order[release.closest],
        "notes": encoder.notes,
        "pool": _pool(_with_keys(records, tables, keys, aside), asked.threads),
        **_about_rows(rows, prints, chance, _other_labels(*records)),
        "copied": release.matches.copies > 0,
        "nearly_copied": release.matches.matches >= targets.shape[1] - 1 if targets.shape[1] >= 3 else None,
        "categories": _categories(*records),
        **_about_people(asked.groups, tables, who, aside),
    }
    if order is not None:
        repeated = () if keys is None else keys.repeated
        shown = _compared(encoder.names, targets, cells[2], numbers, split)
        common["compared"] = shown.with_keys(_key_cells(_counted_of(tables, aside), held["synthetic"], repeated))
    if not callable(query):
        common |= {"sizes": sizes, "by_size": release.by_size()}
    return _material(answers, split, matched[2].rows, query, table_queries.QUERIES, common)


def _aside(
    compared: Sequence[Table], columns: Sequence[str], person: Any, rng: np.random.Generator | None
) -> Aside | None:
    """Which held-out rows serve as reference; by the caller's generator, or by the records alone."""
    train, holdout = (table.select(columns) for table in compared[:2])
    sizes = len(train), len(holdout)
    people = people_of(person, sizes)
    count = number_aside(*(sizes if people is None else map(len, people)))
    if count == 0:
        return None
    chance = rng if rng is not None else np.random.default_rng(seed_of(train.fingerprint(), holdout.fingerprint()))
    return set_aside(len(holdout), None if people is None else people[1], count, chance)


def _counted_of(parts: Sequence[Any], aside: Aside | None) -> list[Any]:
    """Training rows and counted held-out rows, of tables or of their cells."""
    if aside is None:
        return [*parts[:2]]
    holdout = parts[1]
    return [parts[0], holdout.take(aside.counted) if isinstance(holdout, Table) else holdout[aside.counted]]


def _with_keys(
    records: Sequence[Table], tables: Sequence[Any], keys: RepeatedKeys | None, aside: Aside | None
) -> Sequence[Table]:
    """The counted records, with the columns that are not compared and of which the release repeats a value.

    Texts with digits are told as numbers: people who are numbered one side after the other differ by their order.
    """
    if keys is None or not keys.repeated:
        return records
    repeated = set(keys.repeated)
    names = [name for name in tables[0].names if name in {*records[0].names, *repeated}]
    sides = [
        Table(table.names, tuple(as_numbers(part) if name in repeated else part for name, part in table), table.origin)
        for table in map(as_table, _counted_of(tables, aside))
    ]
    mixed = [name for name in keys.repeated if len({table.kind(name) for table in sides}) > 1]
    return match_tables(*(as_table(table, categories=mixed) for table in sides), columns=names, at_least=1)


def _about_people(groups: Any, tables: Sequence[Any], person: Any, aside: Aside | None) -> dict[str, Any]:
    """Groups and people of the records that are counted, and which held-out records these are."""
    if aside is not None and person is not None:
        person = person[0], np.asarray(person[1])[aside.counted]
    return {
        "groups": group_labels(groups, *_counted_of(tables, aside)),
        "person": person,
        "counted": None if aside is None else aside.counted,
        "set_aside": 0 if aside is None else len(aside.rows),
    }


def _sample(rows: int, fingerprints: Mapping[str, str]) -> NDArray[np.int64]:
    """Which rows of a table are held against each other by marginals and the classifier."""
    return sample_of(rows, np.random.default_rng(seed_of(*fingerprints.values())))


def _other_labels(train: Table, holdout: Table) -> str | None:
    """Say of which column of few labels the two sides share none: written in two ways, or of two populations.

    A column that is empty on one side and full on the other is such a column, labels or not.
    """
    for (name, inside), (_, outside) in zip(train, holdout, strict=True):
        sides = inside, outside
        often = all(0 < FEW_LABELS * len(side.labels) <= len(side) for side in sides)
        gaps = sorted(side.missing.mean() for side in sides)
        empty = gaps == [0.0, 1.0] and min(map(len, sides)) >= FEW_LABELS
        if empty or (often and set(inside.labels).isdisjoint(outside.labels)):
            return (
                f"Training and held-out rows share no label of {name!r}, so it alone tells them apart: write it in one "
                "way in both, or leave it out."
            )
    return None


def _about_rows(
    rows: Mapping[str, NDArray[np.int64]],
    fingerprints: Mapping[str, str],
    chance: np.random.Generator,
    problem: str | None = None,
) -> dict[str, Any]:
    """What the numbers of equal rows of the tables in memory say; a ``problem`` that is known already stays."""
    train, holdout, release, reference = rows["train"], rows["holdout"], rows.get("synthetic"), rows.get("reference")
    own = np.random.default_rng(chance.integers(2**63))
    sides = problem or holdout_problem(train, holdout, None, reference, rng=own, fingerprints=fingerprints)
    return {
        "shared_rows": int(np.isin(train, holdout).sum()),
        "in_reference": (0, 0) if reference is None else _counted(train, holdout, reference),
        "sides_problem": sides,
        "problem": sides or holdout_problem(train, holdout, release, reference, rng=own),
        "fingerprints": fingerprints,
        "chance": chance,
    }


_NAMES = ("train", "holdout", "synthetic", "reference")


def _material(
    answers: Answers, split: int, synthetic: int, query: Any, known: Mapping[str, Any], common: dict[str, Any]
) -> ReleaseAnswers:
    if callable(query):
        asked = f"the caller's own query {answers.names[0]}"
    elif len(answers.names) == 1:
        asked = known[answers.names[0]].says
    else:
        asked = f"a learned combination of {', '.join(answers.names)}"
    common |= {"directed": not callable(query), "notes": (*common.get("notes", ()), *answers.remarks)}
    return ReleaseAnswers(split, synthetic, answers.names, answers.values, asked, failed=answers.failed, **common)


def _answers(
    release: Any, known: Any, query: Any, given: list[Any], split: int, *, referring: bool, keyed: bool = False
) -> Answers:
    """Ask a query of the caller's own, or those of a module of queries that it names.

    ``referring`` says whether there is a reference, ``keyed`` whether columns were left out as keys or texts.
    """
    if callable(query):
        return _own(query, given, split, release.targets)
    if isinstance(query, str):
        asked = (*known.DEFAULT, *(known.REFERRING if referring else ()), *(known.KEYED if keyed else ()))
        return ask(release, known.QUERIES, asked if query == "auto" else (query,))
    if not _is_list_of_names(query):
        raise InputTypeError(f"query must be a name, a list of names or a function, got {query!r}")
    return ask(release, known.QUERIES, query)


def _own(query: Callable[..., Any], given: list[Any], split: int, targets: int) -> Answers:
    """Ask the caller's own function about the records as they were given."""
    name = getattr(query, "__name__", type(query).__name__)
    parts = []
    for records, side, rows in ((given[0], "train", split), (given[1], "holdout", targets - split)):
        answer = np.asarray(query(records, given[2]))
        answer = answer[:, None] if answer.ndim == 1 else answer
        if answer.ndim != 2 or len(answer) != rows or answer.dtype.kind not in "iufb":
            raise InputError(
                f"query {name} must return {rows} rows of numbers for {side}, got {answer.dtype} of {answer.shape}"
            )
        parts.append(answer.astype(np.float64))
    if parts[0].shape[1] != parts[1].shape[1]:
        raise InputError(
            f"query {name} returned {parts[0].shape[1]} numbers per record for train, {parts[1].shape[1]} for holdout"
        )
    width = parts[0].shape[1]
    names = (name,) if width == 1 else tuple(f"{name} {i}" for i in range(width))
    return Answers(names, np.concatenate(parts))


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(name, str) for name in value)


def is_plain(part: Any) -> bool:
    """Whether records are plain numbers or truth values, in an array or in lists of one length."""
    if isinstance(part, list | tuple) and part and isinstance(part[0], Number | np.bool_ | list | tuple | np.ndarray):
        try:
            part = np.asarray(part)
        except (ValueError, OverflowError):
            return False
    return isinstance(part, np.ndarray) and part.dtype.kind in "biuf"


def _rows(part: Any, name: str) -> Any:
    """Images and other blocks as rows."""
    if part.ndim == 0 or len(part) == 0:
        raise InputError(f"{name} must have at least one row, got shape {part.shape}")
    return part.reshape(len(part), -1)


def _row_numbers(parts: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Number the rows of tables that are coded alike, or of arrays, so that equal rows have equal numbers."""
    return np.split(row_ids(np.concatenate(parts)), np.cumsum([len(part) for part in parts])[:-1])


def _counted(train: NDArray[np.int64], holdout: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[int, int]:
    """Count the training rows and the held-out rows whose numbers stand among others."""
    return int(np.isin(train, others).sum()), int(np.isin(holdout, others).sum())


def _fingerprints(tables: Sequence[Any]) -> dict[str, str]:
    return {name: table.fingerprint() for name, table in zip(_NAMES, tables, strict=False)}


def column_numbers(encoder: TableEncoder) -> tuple[list[Array | None], list[Array | None]]:
    """For each column scaled number and rank of each code, NaN for missing cells; None for categories and constants."""
    tables: tuple[list[Array | None], list[Array | None]] = ([], [])
    for kept, known in zip(tables, (encoder.scaled, encoder.ranks), strict=True):
        for values, levels in zip(known, encoder.levels, strict=True):
            numbers = None if values is None else values.astype(np.float64)
            if numbers is not None and levels.any_missing:
                numbers[levels.known] = np.nan
            kept.append(numbers)
    return tables


def _compared(
    names: tuple[str, ...],
    targets: NDArray[np.int32],
    released: NDArray[np.int32],
    numbers: Sequence[Array | None],
    split: int,
) -> ComparedColumns:
    """The cells as numbers where they are numbers, as codes where they are not."""
    sides = [
        [codes if table is None else table[codes] for codes, table in zip(cells.T, numbers, strict=True)]
        for cells in (targets, released)
    ]
    return ComparedColumns(names, sides[0], sides[1], [table is not None for table in numbers], split)


def _key_cells(
    records: Sequence[Table], released: Table, names: Sequence[str]
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Keys and texts of records and released rows as codes, equal where the cells are."""
    found = {}
    for name in names:
        *sides, others = key_codes([*records, released], name)
        found[name] = np.concatenate(sides), others
    return found


def _pool(sides: Sequence[Table], n_jobs: int | None) -> Pool:
    """The records of both sides, in an encoding that has not seen the release."""
    encoder = TableEncoder.fit(*sides)
    cells = np.concatenate([encoder.transform(table) for table in sides])
    return Pool(len(sides[0]), encoder.names, cells=cells, numbers=column_numbers(encoder)[0], n_jobs=n_jobs)


def _categories(train: Table, holdout: Table) -> Labels:
    """The categorical columns with few values, to be searched for exposed groups."""
    found: Labels = {}
    for (name, inside), (_, outside) in zip(train, holdout, strict=True):
        if inside.kind == "category":
            different = len({*inside.labels, *outside.labels}) + bool(inside.missing.any() or outside.missing.any())
            if 1 < different <= MOST_CATEGORIES:
                found[name] = _coded(name, inside, outside)
    return found


def _coded(name: str, inside: Column, outside: Column) -> Coded:
    """A categorical column of both sides."""
    gone = ["missing"] if inside.missing.any() or outside.missing.any() else []
    values = np.unique([*inside.labels, *outside.labels, *gone])
    sides = [np.searchsorted(values, [*side.labels, "missing"])[side.values] for side in (inside, outside)]
    return Coded(((name, values),), sides[0], sides[1])


def group_labels(groups: Any, train: Table, holdout: Table) -> Any:
    """Labels for the named columns; labels given as such pass."""
    if isinstance(groups, str):
        groups = [groups]
    if not _is_list_of_names(groups):
        return groups
    train, holdout = match_tables(train, holdout, columns=list(dict.fromkeys(groups)), at_least=1)
    labels: Labels = {}
    for name in train.names:
        sides, kind = [table.stored(name) for table in (train, holdout)], train.kind(name)
        values = sides[0].values, sides[1].values
        labels[name] = _coded(name, *sides) if kind == "category" else Coded.of(name, *_ranges(values, kind))
    return labels


def _ranges(sides: tuple[Array, Array], kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Numbers as labels: themselves if they are few, otherwise the quarter of the pooled values that they lie in."""
    pooled = np.concatenate(sides) + 0.0
    known = pooled[~np.isnan(pooled)]
    edges = np.unique(known)
    if len(edges) <= MOST_LABELS:
        texts = _shown(edges, kind)
    else:
        edges = np.unique(np.quantile(known, [0.25, 0.5, 0.75], method="inverted_cdf"))
        ends = _shown(np.array([known.min(), *edges, known.max()]), kind)
        texts = [f"{low} to {high}" for low, high in pairwise(ends)]
    labels = np.array([*texts, "missing"])

    def label(side: Array) -> NDArray[Any]:
        return labels[np.where(np.isnan(side), len(labels) - 1, np.searchsorted(edges, side, side="left"))]

    return label(sides[0]), label(sides[1])


def _shown(values: Array, kind: str) -> list[str]:
    """Write whole numbers and dates as such, others in the fewest digits, six at least, that keep them apart."""
    if kind == "date":
        unit: Any = "s" if np.any(values % 86400.0) else "D"
        return [str(text) for text in np.datetime_as_string(np.floor(values).astype("datetime64[s]"), unit=unit)]
    if np.all(np.abs(values) < 2**53) and np.all(values == np.floor(values)):
        return [str(int(value)) for value in values]
    different = len(np.unique(values))
    ways = ([f"{value:.{digits}g}" for value in values] for digits in range(6, 18))
    return next(texts for texts in ways if len(set(texts)) == different)
