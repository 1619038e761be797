"""Codes of a table and what they stand for, as arrays by column."""

from types import SimpleNamespace

import numpy as np


def arrays_of(encoder, table):
    """Codes, and for columns that are scaled their numbers and where they are missing."""
    cells = encoder.transform(table)
    places = [i for i, scaled in enumerate(encoder.scaled) if scaled is not None]
    shape = (len(cells), len(places))
    return SimpleNamespace(
        cells=cells,
        number_names=tuple(encoder.names[i] for i in places),
        numbers=np.array([encoder.scaled[i][cells[:, i]] for i in places], dtype=np.float32).T.reshape(shape),
        number_missing=np.array([cells[:, i] == encoder.levels[i].known for i in places], dtype=bool).T.reshape(shape),
    )
