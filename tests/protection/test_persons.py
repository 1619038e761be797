"""Whole persons or households drawn and hidden by ``protect``."""

import numpy as np
import pytest

import whosin as wi
from whosin.errors import InputError
from whosin.mechanisms.secure import SeededSource

ROWS = np.array([0.2, -0.1, 0.5, 0.3, -0.4, 0.1, 0.25, -0.6, 0.9, 0.4])
HOME = ["b", "b", "a", "a", "a", "c", "d", "e", "f", "c"]
SUMS = np.array([0.1, 0.4, 0.5, 0.25, -0.6, 0.9])


@pytest.mark.parametrize("estimator", ["sum", "mean", ["sum", "mean"]])
def test_sums_are_those_of_what_each_person_adds(estimator):
    by_row = wi.protect(estimator, ROWS, person=HOME, eta=0.1, testing_source=SeededSource(1), keep_training=True)
    by_hand = wi.protect(estimator, SUMS, eta=0.1, testing_source=SeededSource(1), keep_training=True)
    assert np.allclose(by_row.value, by_hand.value, rtol=1e-12)
    assert np.allclose(by_row.certificate.noise_scale, by_hand.certificate.noise_scale, rtol=1e-12)
    assert (by_row.certificate.records, by_row.certificate.train_size) == (6, 3)
    drawn = {HOME[i] for i in by_row.training}
    assert sorted(i for i, name in enumerate(HOME) if name in drawn) == by_row.training.tolist()
    assert drawn == {"bacdef"[i] for i in by_hand.training}


def test_the_promise_holds_in_the_world_of_persons():
    certificate = wi.protect("sum", ROWS, person=HOME, eta=0.15, testing_source=SeededSource(1)).certificate
    noise = wi.mechanisms.Gaussian(lambda drawn: sum(SUMS[i] for i in drawn), certificate.noise_scale)
    game = wi.worlds.uniform_subsets(range(6), 3).play(noise)
    assert 0.02 < game.mip().eta <= 0.15


@pytest.mark.parametrize("sensitivity", ["average", "moment"])
def test_other_estimators_see_whole_persons(sensitivity):
    seen = []

    def spread(rows):
        seen.append(sorted(rows.tolist()))
        return float(np.tanh(rows).sum())

    wi.protect(
        spread, ROWS, person=HOME, eta=0.3, sensitivity=sensitivity, subsets=40, rng=0, testing_source=SeededSource(1)
    )
    of = {name: [v for v, own in zip(ROWS, HOME, strict=True) if own == name] for name in set(HOME)}
    for rows in seen:
        names = {HOME[ROWS.tolist().index(v)] for v in rows}
        assert len(names) == 3
        assert rows == sorted(v for name in names for v in of[name])


def test_persons_that_cannot_be_taken():
    for person, words in ((["a"] * 10, "at least two persons"), (["a", "b"], "one name per record")):
        for estimator in ("sum", np.median):
            with pytest.raises(InputError, match=f"^person must .*{words}"):
                wi.protect(estimator, ROWS, person=person, eta=0.1, rng=0)
    with pytest.raises(InputError, match="got a list of both"):
        wi.protect(["sum", np.median], ROWS, person=HOME, eta=0.1, rng=0)
