"""Two sides of records whose relation is known, as pools."""

import numpy as np

from whosin.auditing.releases.sides import Pool


def array_pool(train, holdout, **options):
    rows = np.concatenate([train, holdout])
    return Pool(len(train), tuple(f"x{i}" for i in range(rows.shape[1])), rows=rows, **options)


def table_pool(train, holdout, categories=(), **options):
    """Code every column; columns named as categories have no order."""
    rows = np.concatenate([train, holdout])
    cells, numbers = np.empty(rows.shape, dtype=np.int32), []
    for column in range(rows.shape[1]):
        values, cells[:, column] = np.unique(rows[:, column], return_inverse=True)
        scaled = (values - values[0]) / max(float(values[-1] - values[0]), 1e-300)
        numbers.append(None if column in categories else scaled)
    names = tuple(f"x{i}" for i in range(rows.shape[1]))
    return Pool(len(train), names, cells=cells, numbers=numbers, **options)


def alike(rng, rows=500, columns=10):
    return rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))


def wider(rng, rows=500, factor=1.12):
    train, holdout = alike(rng, rows, 20)
    return train, factor * holdout


def shifted(rng, rows=500, by=0.3):
    train, holdout = alike(rng, rows)
    holdout[:, 3] += by
    return train, holdout


def other_share(rng, rows=500):
    train, holdout = (rng.integers(0, 4, size=(rows, 8)).astype(float) for _ in range(2))
    train[:, 2], holdout[:, 2] = rng.random(rows) < 0.5, rng.random(rows) < 0.65
    return train, holdout


def uncoupled(rng, rows=500):
    """Both columns keep their laws, and lose what binds them on one side."""
    train, holdout = (np.repeat(rng.normal(size=(rows, 1)), 6, axis=1) + rng.normal(size=(rows, 6)) for _ in range(2))
    for column in range(6):
        holdout[: rows // 2, column] = rng.permutation(holdout[: rows // 2, column])
    return train, holdout


def families(rng, people=100, rows=10, columns=6, noise=0.1):
    """Persons of several rows that differ little; returns the sides and the person of each row."""
    sides = []
    for _ in range(2):
        centres = np.repeat(rng.normal(size=(people, columns)), rows, axis=0)
        sides.append(centres + noise * rng.normal(size=centres.shape))
    return sides[0], sides[1], np.repeat(np.arange(2 * people), rows)


def households(rng):
    """Independent people, three to a household number; households are dealt to the sides at random."""
    numbers = rng.permutation(400)[:200]
    sides = [np.column_stack([np.repeat(numbers[place::2], 3), rng.normal(size=(300, 5))]) for place in (0, 1)]
    return sides[0], sides[1]
