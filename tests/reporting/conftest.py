"""Results to report, made once."""

import warnings

import numpy as np
import polars as pl
import pytest
from report_pages import HOSTILE, QUOTED

import whosin as wi


def people(rows, rng):
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "income": rng.lognormal(10, 1, rows).round(4),
            HOSTILE: rng.choice(["cook", QUOTED, "smith"], rows, p=[0.5, 0.3, 0.2]),
        }
    )


@pytest.fixture(scope="session")
def tables():
    rng = np.random.default_rng(7)
    train, holdout = people(600, rng), people(600, rng)
    return train, holdout, pl.concat([train.head(300), people(300, rng)])


@pytest.fixture(scope="session")
def leaky(tables):
    return wi.audit_synthetic(*tables, groups=HOSTILE, rng=1)


@pytest.fixture(scope="session")
def quiet(tables):
    train, holdout, _ = tables
    return wi.audit_synthetic(train, holdout, people(600, np.random.default_rng(8)), rng=1, prior=0.3)


@pytest.fixture(scope="session")
def scores():
    rng = np.random.default_rng(3)
    labels = rng.choice(["a", "$b$ 漢字"], 400), np.append(rng.choice(["a", "$b$ 漢字"], 399), "only outside")
    return wi.audit(rng.normal(1, 1, 400), rng.normal(0, 1, 400), groups=labels, metric="accuracy", rng=0)


@pytest.fixture(scope="session")
def pool():
    records = np.random.default_rng(0).normal(size=(41, 2))
    return wi.population.gaussian(records, epsilon=1.0, delta=1e-5, clip=2.0, method="pairwise", train_fraction=0.3)


@pytest.fixture(scope="session")
def release():
    return wi.protect("mean", np.random.default_rng(0).normal(size=60), eta=0.1)


@pytest.fixture(scope="session")
def one_run():
    rng = np.random.default_rng(5)
    included = rng.random(1000) < 0.5
    return wi.audit_one_run(rng.normal(size=1000) + 1.5 * included, included, guesses=[200, 400], delta=1e-5)


@pytest.fixture(scope="session")
def results(leaky, quiet, scores, pool, release, one_run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {
            "synthetic audit": leaky,
            "quiet audit": quiet,
            "audit of scores": scores,
            "guarantee": wi.PureDP(1.0),
            "guarantee with delta": wi.ApproxDP(1.0, 1e-5),
            "population": pool,
            "release": release,
            "certificate": release.certificate,
            "one run": one_run,
            "comparison": leaky.compare(wi.PureDP(0.1, "replace")),
            "comparison of one run": one_run.compare(wi.ApproxDP(0.5, 1e-5)),
            "several audits": {HOSTILE: leaky, "second": quiet, "third": scores},
        }
