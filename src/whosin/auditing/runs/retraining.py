"""Auditing a way of training, without a holdout: train again and again on random halves of the records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.auditing.measuring.groups import Coded
from whosin.auditing.measuring.people import People, people_in
from whosin.auditing.releases.tables_to_answers import group_labels, is_plain
from whosin.auditing.runs.coin_attack import ATTACKS
from whosin.auditing.runs.retrained import RetrainedAudit, Scores
from whosin.auditing.runs.trainings import ArrayAnswers, Classifier, Function, Generator, TableAnswers, Trainings
from whosin.errors import InputError, InputTypeError, check_choice, check_confidence, check_probability, check_whole
from whosin.parallel.fingerprint import fingerprint
from whosin.parallel.journal import Journal, check_seeded
from whosin.parallel.tasks import stream
from whosin.tables import Table, as_table, read_table, row_groups
from whosin.training.adapters import as_adapter, row_count

COINS = ("independent", "balanced")
FEWEST_TRAININGS = 10
FEWEST_UNITS = 16
TRAINING = 0.9
"""Share of the work that the trainings are, for the progress bar."""


def audit_retrained(
    model: Any,
    records: Any,
    *,
    trainings: int = 32,
    release_rows: int | None = None,
    attack: str = "auto",
    person: Any = None,
    groups: Any = None,
    coins: str = "independent",
    tolerate: float | None = None,
    confidence_level: float = 0.95,
    journal: str | Path | None = None,
    n_jobs: int | None = None,
    rng: Any = None,
    progress: Callable[[float], object] | None = None,
) -> RetrainedAudit:
    """Measure what a way of training gives away about who is in the data: no holdout is needed.

    The model is trained again and again, each record being in or out by a fair coin of its own. An attacker who knows
    all records and trains copies guesses the coins of each training by what it learned on the trainings before.

    Parameters
    ----------
    model : object with fit and sample, classifier, or callable
        A generator (of SDV, of scikit-learn, or any object with ``fit(records)`` and ``sample(n)``); with
        ``records=(X, y)`` a classifier of scikit-learn or an adapter with ``fit(X, y, rng)``; or a function
        ``(records, rng)`` that trains on the records it is given and returns the released rows, or one score for each
        of all records. It is copied before every training, and must do everything that looks at records itself.
    records : frame, array, path, or pair (X, y)
        All records there are.
    trainings : int, default 32
        32 for a verdict; 64 where single people are to be named or a promise is to be refuted; at least 10.
    release_rows : int, optional
        Rows that the generator will release when it is trained on all records. Each training releases as many for
        each of its own records; by default as many as it was trained on.
    attack : {"auto", "linear"}, default "auto"
        "linear" learns a logistic regression, "auto" boosted trees that correct it, where there are records enough.
    person : str or array, optional
        The column that says whose a record is, which is then neither trained on nor compared, or identifiers. All
        records of a person are in or out together, and risks are those of people.
    groups : str, sequence of str, mapping or array, optional
        Columns whose groups are reported, or labels of the records (by name).
    coins : {"independent", "balanced"}, default "independent"
        "balanced" trains on exactly half of the units: what MIP and PMP speak of.
    tolerate : float, optional
        The largest TPR - FPR that is tolerated in a typical training.
    confidence_level : float, default 0.95
    journal : path, optional
        A file where the answers of each training are kept as soon as they are known, and no release: an interrupted
        audit goes on, and one with more trainings does only the new ones. It takes ``rng``.
    n_jobs : int, optional
        Processes, as in joblib. Inside ``joblib.parallel_config(backend="dask")`` or "ray" trainings run there.
    rng : optional
        Seed of coins and trainings; by default the same every time.
    progress : callable, optional
        Called with the share of the work that is done.

    Returns
    -------
    RetrainedAudit

    Notes
    -----
    ``trainings`` trainings, and O(records·released rows·columns) for the answers of each; the attack takes seconds for
    a thousand records. Memory O(trainings·records·queries): answers are kept, releases are not. Results do not depend
    on ``n_jobs``. A training that fails is tried again with the same coins, as leaving it out would favour some coins.

    The limits hold for any model and any number of records, and rest on the coins alone
    (:mod:`whosin.auditing.runs.coin_limits`). What is measured is training on a random half of the records. A release
    trained on all of them may leak more or less: no theorem leads from one to the other.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(60, 3))
    >>> def copies(records, rng):
    ...     return records + 0.01 * rng.normal(size=records.shape)
    >>> found = wi.audit_retrained(copies, people, trainings=16, attack="linear")
    >>> found.verdict.state, found.advantage.lower > 0.9
    ('leak', True)
    """
    count = check_whole("trainings", trainings, low=FEWEST_TRAININGS)
    kind, tossed = check_choice("attack", attack, ATTACKS), check_choice("coins", coins, COINS)
    level = check_confidence(confidence_level)
    if tolerate is not None:
        check_probability("tolerate", tolerate)
    if release_rows is not None:
        check_whole("release_rows", release_rows, low=1)
    check_seeded(journal, rng)
    seed = int(np.random.default_rng(0 if rng is None else rng).integers(2**62))
    if isinstance(records, str | Path):
        records = read_table(records)
    if isinstance(records, Table):
        records = frame_of(records)
    subject, table, owners = _subject(model, records, person, release_rows)
    size = row_count(records[0] if isinstance(subject, Classifier) else records)
    people = None if owners is None else people_in(owners, size)
    units = size if people is None else len(people)
    if units < FEWEST_UNITS:
        raise InputError(
            f"records must have at least {FEWEST_UNITS} {'rows' if people is None else 'people'}, got {units}"
        )
    labels = _labels(groups, table, size, people)
    work = Trainings(subject, people, units, seed, tossed == "balanced")
    kept = None if journal is None else Journal(journal, _run(work, model, records, table, release_rows))
    answers: list[Any] = [None] * count
    with closing(stream(work, range(count), n_jobs=n_jobs, journal=kept)) as found:
        for done, (number, value) in enumerate(found, start=1):
            answers[number] = value
            if progress is not None:
                progress(TRAINING * done / count)
    stack = np.array(answers, dtype=np.float64)
    tosses = np.array([work.coins(number) for number in range(count)])
    scores = Scores.learn(stack, tosses, min(work.main, stack.shape[2]), kind)
    if progress is not None:
        progress(1.0)
    rare = None if table is None else TableAnswers(table).rarity
    rarity = rare if rare is None or people is None else people.pooled(rare, "largest")
    covariates = None if rarity is None else rarity[:, None]
    notes = _notes(release_rows, size, table if people is None else None)
    return RetrainedAudit(scores, work, level, labels, covariates, tolerate, notes)


def frame_of(table: Table) -> Any:
    """Return a table that was read from a file as the frame that generators take: pandas where it is installed."""
    import importlib.util

    import polars as pl

    columns = {}
    for name in table.names:
        values = table.column(name)
        whole = values.dtype.kind == "f" and bool(np.all(np.isfinite(values) & (values == np.floor(values))))
        columns[name] = values.astype(np.int64) if whole else values.tolist() if values.dtype == object else values
    frame = pl.DataFrame(columns)
    if importlib.util.find_spec("pandas") is None:
        return frame
    import pandas as pd  # type: ignore[import-untyped]

    return pd.DataFrame(
        {
            name: frame[name].to_list() if frame[name].dtype == pl.String else frame[name].to_numpy()
            for name in frame.columns
        }
    )


def _subject(model: Any, records: Any, person: Any, release_rows: int | None) -> tuple[Any, Table | None, Any]:
    """Return what is trained, the table of records (None for arrays and classifiers) and whose they are."""
    if isinstance(records, tuple) and len(records) == 2:
        if isinstance(person, str):
            raise InputTypeError("person must be an array of identifiers with records=(X, y), got a name")
        X, y = records[0] if hasattr(records[0], "shape") else np.asarray(records[0]), np.asarray(records[1])
        if y.shape != (row_count(X),):
            raise InputError(f"records must have one label per record, got {row_count(X)} and shape {y.shape}")
        return Classifier(as_adapter(model), X, y), None, person
    owners = person
    if is_plain(records):
        if isinstance(person, str):
            raise InputTypeError("person must be an array of identifiers with arrays, got a name: they have no columns")
        records = np.asarray(records)
        if records.ndim < 2:
            raise InputError(f"records must have shape (n, ...), got {records.shape}")
        table: Table | None = None
        about: TableAnswers | ArrayAnswers = ArrayAnswers(records)
    else:
        whole = as_table(records, "records")
        if isinstance(person, str):
            owners = whole.column(person)
            records = _without(records, person)
        table = as_table(records, "records")
        about = TableAnswers(table)
    if callable(getattr(model, "fit", None)):
        if not callable(getattr(model, "sample", None)) and not callable(getattr(model, "generate", None)):
            raise InputTypeError(
                f"model must have sample(n) beside fit, got {type(model).__name__}: of a classifier, records are "
                "a pair (X, y)"
            )
        return Generator(model, records, about, release_rows), table, owners
    if not callable(model):
        raise InputTypeError(
            f"model must have fit and sample, or be a function (records, rng), got {type(model).__name__}"
        )
    if release_rows is not None:
        raise InputTypeError("release_rows goes with a model that has fit and sample: a function decides by itself")
    return Function(model, records, about), table, owners


def _without(records: Any, column: str) -> Any:
    import narwhals.stable.v2 as nw

    return nw.from_native(records, eager_only=True).drop(column).to_native()


def _labels(groups: Any, table: Table | None, size: int, people: People | None) -> dict[str, NDArray[np.str_]]:
    """Return one label per unit, by column."""
    if groups is None:
        return {}
    if table is not None:
        groups = group_labels(groups, table, table)
        if isinstance(groups, Mapping):
            groups = {name: one.texts[0] if isinstance(one, Coded) else one for name, one in groups.items()}
    named = groups if isinstance(groups, Mapping) else {"": groups}
    labels = {}
    for name, given in named.items():
        texts = np.array([str(value) for value in np.asarray(given).ravel()])
        if len(texts) != size:
            raise InputError(f"groups must have one label for each of the {size} records, got {len(texts)}")
        labels[str(name)] = texts if people is None else people.labels(texts)
    return labels


def _run(work: Trainings, model: Any, records: Any, table: Table | None, release_rows: int | None) -> str:
    """What the answers of a training depend on; not how many trainings there are."""
    data = records if table is None else table.fingerprint()
    owners = None if work.people is None else work.people.number
    return fingerprint("retraining", model, data, release_rows, owners, work.units, work.seed, work.balanced)


def _notes(release_rows: int | None, size: int, table: Table | None) -> tuple[str, ...]:
    """Say how many rows are released, and, of a table where nobody said whose records are, how many repeat another."""
    notes = []
    if release_rows is not None:
        notes.append(
            f"{release_rows} rows for {size} records: each training released as many for each of its own records"
        )
    if table is not None:
        (numbers,) = row_groups(table)
        repeated = int(np.sum(np.bincount(numbers)[numbers] > 1))
        if repeated:
            notes.append(
                f"{repeated} of the {size} records equal another one in every cell: where these are of one person, its "
                "risk is larger than theirs; name the column that says whose they are"
            )
    return tuple(notes)
