"""The journal of ``protect``: an interrupted release trains only what is missing, and nothing changes."""

import sys

import numpy as np
import pytest

import whosin as wi
from whosin.errors import InputError
from whosin.mechanisms.secure import SeededSource

POOL = np.random.default_rng(1).normal(size=(40, 2))
BEGUN = []


class Stop(BaseException):
    """Stands for an interrupt."""


def middle(rows):
    vars(sys.modules[__name__])["BEGUN"].append(len(rows))  # by its name, a change of it would make another run
    return np.median(rows, axis=0)


def release(estimator=middle, **options):
    options = {"eta": 0.3, "subsets": 32, "confidence_level": 0.8, "rng": 5, "ball": "pilot"} | options
    BEGUN.clear()
    found = wi.protect(estimator, POOL, testing_source=SeededSource(2), **options)
    return found.value.tolist(), found.certificate.to_dict(), len(BEGUN)


@pytest.mark.parametrize("sensitivity", ["moment", "average"])
def test_an_interrupted_release_resumes(tmp_path, sensitivity):
    options = {"sensitivity": sensitivity, "ball": None, "eta": 0.4, "confidence_level": 0.6, "subsets": 24}
    value, certificate, all_trainings = release(**options)
    seen = []

    def interrupt(share):
        seen.append(share)
        if len(seen) == 20:
            raise Stop

    with pytest.raises(Stop):
        release(journal=tmp_path / "journal", progress=interrupt, **options)
    interrupted = len(BEGUN)
    assert interrupted < all_trainings
    resumed = release(journal=tmp_path / "journal", **options)
    assert resumed[:2] == (value, certificate)
    assert resumed[2] <= all_trainings - interrupted + 2  # once to learn the shape, once for the release
    assert release(journal=tmp_path / "journal", **options) == (value, certificate, 2)


def test_a_change_is_trained_again(tmp_path):
    journal = tmp_path / "journal"
    _, _, everything = release(journal=journal)
    assert everything > 40
    assert release(journal=journal)[2] == 2
    assert release(journal=journal, rng=6)[2] == everything
    other = lambda rows: middle(rows) + 1.0  # noqa: E731
    assert release(other, journal=journal)[2] == everything
    assert release(other, journal=journal)[2] == 2
    assert release(journal=journal, train_fraction=0.4)[2] > 40


def test_failures_are_not_kept(tmp_path):
    broken = [True]

    def sometimes(rows):
        if broken[0]:
            raise ArithmeticError("not now")
        return rows.mean(axis=0)

    with pytest.raises(InputError, match="not now"):
        release(sometimes, journal=tmp_path / "journal")
    assert b'"task"' not in (tmp_path / "journal").read_bytes()


def test_a_journal_needs_a_seed(tmp_path):
    with pytest.raises(InputError, match="rng must be given with a journal"):
        release(journal=tmp_path / "journal", rng=None)
