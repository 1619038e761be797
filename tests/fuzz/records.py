"""Records of a pool: releases with a certificate, and what a large ε means for them."""

import contextlib

import numpy as np

import whosin as wi
from whosin.errors import WhosinError

from .support import Bytes, check_json, check_share


def _pool(bits, columns=2):
    table = bits.numbers(bits.odd((6, 4, 8), (0, 1, 2, 3)), 1 + bits.whole(columns))
    if bits.rare(24):
        return bits.choice((None, "x", [], [[1.0], [2.0, 3.0]], {"a": [1.0, 2.0]}, [["a"], ["b"]]))
    kind = bits.whole(8)
    return table[:, 0] if kind == 6 else table.tolist() if kind == 7 else table


def _protect(data):
    """A release of a few records."""
    bits = Bytes(data)
    records = _pool(bits)
    estimators = ("mean", "sum", "median", "cov", wi.protection.SumQuery(), lambda x: x.mean(axis=0), lambda x: x[:1])
    wrong = ("", None, wi.protection.SumQuery(np.tanh), lambda x: bits.number(), lambda x: [bits.value()], lambda x: x)
    release = wi.protect(
        bits.odd(estimators, wrong),
        records,
        eta=bits.usual(0.1, 0.4, 1e-12, 0.499999),
        noise=bits.odd(("gaussian", "norm_exponential"), ("",)),
        sensitivity=bits.odd(("auto", "average", "moment"), ("",)),
        moment_bound=bits.amount() if bits.rare() else None,
        adjacent_bound=bits.amount() if bits.rare() else None,
        train_fraction=bits.usual(0.5, 0.25, 0.75),
        norm=bits.usual(2, 1, np.inf) if bits.rare() else 2,
        split=bits.odd(("total", "relative"), ("",)),
        subsets=bits.odd((64, 128), (16, 1, 0, "16", 2.5)),
        confidence_level=bits.usual(0.95, 0.5),
        rng=0,
        testing_source=wi.mechanisms.SeededSource(0),
        keep_training=bool(bits.whole(2)),
    )
    assert np.isfinite(np.asarray(release.value, dtype=np.float64)).all()
    check_json(release.to_dict())
    certificate = release.certificate
    assert certificate.bound >= 0.0
    str(release), str(certificate), certificate.explain(), certificate._repr_html_()


def _population(data):
    """A few records, released with Gaussian, Laplace or exponential noise."""
    bits = Bytes(data)
    mechanism = bits.choice(("laplace", "gaussian", "exponential"))
    given = {
        "clip": bits.usual(1.0, 0.1, 1e-300, 1e300),
        "train_fraction": bits.usual(0.5),
        "confidence_level": bits.usual(0.95),
        "delta": bits.usual(1e-5, 0.01, 0.0 if mechanism != "gaussian" else 0.5),
        "rng": 0,
    }
    records = _pool(bits, 1 if mechanism == "laplace" else 2)
    if mechanism == "exponential":
        given["candidates"] = _pool(bits)
        given["loss"] = bits.odd(("distance", "squared"), ("", None, np.zeros((6, 6))))
        given["method"] = bits.odd(("auto", "exact", "two_outcomes", "monte_carlo"), ("",))
        given["draws"] = bits.usual(64, 16)  # of its own accord it takes up to a minute
        given["sensitivity"] = bits.usual(None, 1.0)
    else:
        given["query"] = bits.odd(("mean", "sum", np.tanh), ("", None, lambda x: x[:1], lambda x: x * np.nan))
        # the spectral and the sampled method take seconds
        given["method"] = bits.choice(("auto", "exact", "groups", "")) if bits.rare(60) else "pairwise"
    if mechanism == "exponential" and isinstance(given["draws"], float) and given["draws"] > 1000:
        given["draws"] = 1000
    if bits.rare(6):
        found = wi.population.largest_epsilon(
            records,
            mechanism=bits.name() if bits.rare() else mechanism,
            target=bits.usual(0.5),
            smallest=bits.usual(0.01),
            largest=bits.usual(100.0),
            points=bits.odd((2, 3), (1, 0, "3")),
            **given,
        )
    else:
        found = getattr(wi.population, mechanism)(records, epsilon=bits.amount(), **given)
    check_json(found.to_dict())
    assert (found.per_record >= 0.0).all()
    far = min(1e150, np.abs(np.asarray(given.get("candidates", 0.0), dtype=np.float64)).max() + abs(given["clip"]))
    rounding = 4e-15 * found.noise_scale * max(far, far**2)  # that of the logits: more than a small label
    assert found.pmp.epsilon <= found.dp.epsilon * (1 + 1e-9) + rounding
    check_share(found.pmp.advantage)
    str(found), found.explain()
    with contextlib.suppress(WhosinError):
        found._repr_html_()


TARGETS = {"protect": _protect, "population": _population}


def seeds(name):
    """Any bytes are right."""
    return None
