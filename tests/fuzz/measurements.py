"""Measurements: audits of scores, tables, classifiers, generators and single runs, with small hostile data."""

import contextlib
import struct

import numpy as np

import whosin as wi
from whosin.errors import WhosinError
from whosin.training import GaussianCopula

from .promises import MAKERS
from .support import MARK, Bytes, check_json, check_share

METRICS = ("advantage", "accuracy", "ppv", "npv", "am")
NO_METRICS = ("", None, 3)


def options(bits):
    """Return options that all audits take."""
    return {
        "prior": bits.share() if bits.whole(2) else 0.5,
        "metric": bits.odd(METRICS, NO_METRICS),
        "confidence_level": bits.usual(0.95, 0.5, 0.999),
        "assignment": bits.odd(("unknown", "random"), ("independent trainings", "", None)),
        "rng": 0,
    }


def ask(found, bits):
    """Ask an audit everything; no number leaves its range and no name becomes markup."""
    check_json(found.to_dict())
    check_share(found.advantage.lower, found.advantage.upper)
    assert found.advantage.lower <= found.advantage.upper
    assert MARK not in found._repr_html_()
    str(found), found.explain()
    for attempt in (
        lambda: str(found.compare(bits.choice(MAKERS)(bits))),
        lambda: str(found.risk(bits.odd(METRICS, NO_METRICS), fpr=bits.usual(None, 0.1))),
        lambda: check_share(found.tpr_at(bits.share()).upper),
        lambda: found.individual.highest(bits.usual(3, 0), bits.odd(("both", "member"), ("",))),
        lambda: found.groups.scan({bits.label(): [bits.label() for _ in range(found.members)]}, min_size=bits.usual(1)),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _audits(data):
    """An audit of any scores, in one column or two, numbers or names, with groups."""
    bits = Bytes(data)
    sizes = [bits.odd((8, 5, 2, 12), (0, 1)) for _ in range(2)]
    columns = bits.whole(3)
    if bits.whole(8) == 0:
        sides = [[bits.label() for _ in range(size)] for size in sizes]
    elif columns < 2:
        sides = [bits.numbers(size) for size in sizes]
    else:
        sides = [bits.numbers(size, columns) for size in sizes]
    more = options(bits)
    if bits.whole(4) == 0:
        more["groups"] = tuple([bits.label() for _ in range(size)] for size in sizes)
    if bits.whole(4) == 0:
        more["names"] = [bits.label() for _ in range(max(columns, 1))]
    more["kind"] = bits.odd(("auto", "continuous", "discrete"), ("", None))
    ask(wi.audit(*sides, **more), bits)


def _attacks(data):
    """The canaries of one run."""
    bits = Bytes(data)
    level = bits.usual(0.95, 0.5)
    scores = bits.numbers(bits.odd((16, 20), (0, 1, 3)))
    included = [bool(bits.whole(2)) for _ in scores]
    guesses = bits.odd((None, 4, (2, 2), [4, (1, 1)]), (0, [], "4", 1.5, (1, 2, 3), -1))
    found = wi.audit_one_run(
        scores, included, guesses=guesses, delta=bits.usual(0.0, 1e-5), confidence_level=level, rng=0
    )
    for attempt in (
        lambda: check_share(found.p_value(bits.amount(), bits.usual(None, 1e-5))),
        lambda: found.epsilon_lower_at(bits.share()),
        lambda: check_json(found.compare(bits.choice(MAKERS)(bits)).to_dict()),
    ):
        with contextlib.suppress(WhosinError):
            attempt()
    found.explain()
    check_json(found.to_dict())
    str(found), found._repr_html_()


def _synthetic(data):
    """A small release of hostile values."""
    bits = Bytes(data)
    tables = _three_tables(bits)
    more = options(bits)
    queries = ("auto", "nearest", "nearest_ratio", "rarity", "copies", "equal_cells", "rarity_share")
    if isinstance(tables[0], np.ndarray):
        queries = ("auto", "nearest", "nearest_ratio", "ball", "ball_by_distance")
    more["query"] = bits.odd(queries, ("density_ratio", "", ["nearest", "nearest"], [], None))
    if bits.whole(4) == 0:
        more["reference"] = tables[bits.whole(3)]
    if bits.whole(4) == 0:
        more["columns"] = bits.odd([_names(tables)[:1], _names(tables)], ([], ["x"], "x", [3]))
    if bits.whole(4) == 0:
        more["groups"] = bits.odd(_names(tables) or [None], ("x", 3))
    if bits.whole(8) == 0:
        more["block_rows"] = bits.usual(1, 3)
    ask(wi.audit_synthetic(*tables, kind=bits.odd(("auto", "continuous"), ("",)), n_jobs=1, **more), bits)


def _three_tables(bits):
    import polars as pl

    rows = [bits.odd((4, 8, 6), (0, 1, 2)) for _ in range(3)]
    if bits.whole(3) == 0:
        columns = 1 + bits.whole(3)
        return [bits.numbers(size, columns) for size in rows]
    kinds = {bits.name(): bits.whole(5) for _ in range(1 + bits.whole(3))}
    return [pl.DataFrame({name: _column(bits, kind, n) for name, kind in kinds.items()}, strict=False) for n in rows]


def _names(tables):
    return list(getattr(tables[0], "columns", ()))


def _column(bits, kind, rows):
    if kind == 0:
        return bits.numbers(rows).tolist()
    if kind == 1:
        return [bits.choice((None, "x", "y")) for _ in range(rows)]
    if kind == 2:
        return [bits.name() for _ in range(rows)]
    if kind == 3:
        return [bits.choice((None, True, False)) for _ in range(rows)]
    return [struct.unpack("<b", bits.take(1))[0] for _ in range(rows)]


class _Model:
    """Says what it was told to say, whatever it is asked."""

    def __init__(self, table, classes):
        self.table = table
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        return self.table[: len(X)] if hasattr(self.table, "__len__") else self.table


def _classifiers(data):
    """A classifier with any answers, and labels that it may not know."""
    bits = Bytes(data)
    rows, classes = 1 + bits.whole(5), 1 + bits.whole(3)
    table = np.abs(np.frombuffer(bits.take(rows * classes), dtype=np.int8).reshape(rows, classes)) + 1e-9
    table = table / table.sum(axis=1, keepdims=True)
    if bits.rare():
        table = bits.choice((None, 1.0, [["x", "y"]] * rows, [table, table], bits.numbers(rows, classes), table[:0]))
    labels = bits.odd((np.arange(classes), None), (np.array(list("abcd")[:classes]), np.arange(classes + 1)))
    model = _Model(table, labels)
    sides = [
        (bits.numbers(rows, 2), [bits.odd(range(classes), (9, "a", None)) for _ in range(rows - bits.rare())])
        for _ in range(2)
    ]
    queries = ("auto", "loss", "label_only", "log_probabilities", "modified_entropy", lambda m, X, y: X)
    query = bits.odd(queries, ("", None, "calibrated_loss", lambda m, X, y: None))
    more = {"reference": bits.odd((None, model, [model]), ([], 3)), "augmentations": bits.usual(1, 2)}
    if bits.whole(4) == 3:
        more["groups"] = [bits.label()] * rows, [bits.label()] * rows
    ask(wi.audit_classifier(model, *sides, query=query, **more, **options(bits)), bits)


def _references(data):
    """Scores of the attacks with reference models."""
    bits = Bytes(data)
    from whosin.auditing import models as m

    models, records = 2 + bits.whole(6), 1 + bits.whole(4)
    logits, target = bits.numbers(models, records), bits.numbers(records)
    inside = np.frombuffer(bits.take(models * records), dtype=np.uint8).reshape(models, records) % 2 == 1
    if not bits.rare():
        inside[0], inside[-1] = True, False
    given = target, logits, inside.astype(int) if bits.rare(40) else inside
    a = bits.usual(0.3, 1.0, 0.0, None)
    scores = bits.choice((lambda: m.lira(*given), lambda: m.lira_offline(*given), lambda: m.rmia(*given, a=a)))()
    assert scores.shape == target.shape
    assert not np.isnan(scores).any(), (given, scores)
    known = m.ReferenceModels.from_scores(logits, inside, log_odds=bits.rare(2))
    found = m.audit_with_references(known, bits.usual(0, 1), attack=bits.choice(m.references.ATTACKS), **options(bits))
    ask(found, bits)


class _Generator:
    """Samples what it was told to sample."""

    def __init__(self, rows, *, discriminators=None):
        self.rows = rows
        if discriminators is not None:
            self.discriminators = discriminators

    def sample(self, n):
        return self.rows


def _generators(data):
    """A generative model that gives any rows, and the copula of any table."""
    bits = Bytes(data)
    train, holdout, rows = _three_tables(bits)
    if bits.whole(4) == 0:
        rows = bits.odd((rows,), (None, [], 3, rows[:0], "x", holdout[:1]))
    critics = bits.odd((None, (lambda x: bits.numbers(len(x)),)), ((lambda x: x,), (), 3, (lambda x: None,)))
    more = options(bits)
    queries = ("auto", "nearest", "monte_carlo", "hybrid", "discriminator", "max_discriminator", "discriminators")
    more["query"] = bits.odd(queries if isinstance(train, np.ndarray) else ("auto",), ("", None, 3, []))
    more["n_samples"] = bits.usual(None, 3)
    if bits.whole(3) == 0:
        copula = GaussianCopula(knots=bits.usual(2, 100)).fit(train)
        copula.sample(bits.usual(1, 3), rng=0)
        more["query"], model = "auto", copula
        more["n_samples"] = 4
    else:
        model = _Generator(rows, discriminators=critics)
    ask(wi.audit_generator(model, train, holdout, n_jobs=1, **more), bits)


TARGETS = {
    "audits": _audits,
    "attacks": _attacks,
    "synthetic": _synthetic,
    "classifiers": _classifiers,
    "references": _references,
    "generators": _generators,
}


def seeds(name):
    """Any bytes are right."""
    return None
