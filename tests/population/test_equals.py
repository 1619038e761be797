"""What equal records hide: the laws of counts against a list of all draws, and mechanisms that stay below."""

import itertools

import numpy as np
import pytest

import whosin as wi
from whosin.numerics.finite_laws import closeness_epsilons
from whosin.population.equals import epsilons_among_equals


def listed(classes, k, delta, record):
    """ε̃ of the released counts, from all draws."""
    laws = [{}, {}]
    for drawn in itertools.combinations(range(len(classes)), k):
        counts = tuple(np.bincount(classes[list(drawn)], minlength=classes.max() + 1))
        law = laws[record not in drawn]
        law[counts] = law.get(counts, 0) + 1
    seen = sorted(set(laws[0]) | set(laws[1]))
    with np.errstate(divide="ignore"):
        inside, outside = (np.log([law.get(counts, 0) / sum(law.values()) for counts in seen])[None] for law in laws)
    return max(0.0, *(closeness_epsilons(*pair, delta)[0] for pair in ((inside, outside), (outside, inside))))


@pytest.mark.parametrize("sizes", [[5, 4, 2, 1], [12], [6, 6], [11, 1], [3, 3, 3, 3]])
@pytest.mark.parametrize("k", [3, 6, 8])
@pytest.mark.parametrize("delta", [0.3, 0.05, 0.01])
def test_releasing_the_counts_attains_the_limit(sizes, k, delta):
    classes = np.repeat(np.arange(len(sizes)), sizes)
    limits = epsilons_among_equals(classes[:, None] * 1.0, k, delta)
    for record in (0, len(classes) - 1):
        truth = listed(classes, k, delta, record)
        assert limits[record] == truth or truth <= limits[record] < truth + 1e-9


def test_a_record_alone_and_pure_promises_have_no_limit():
    rows = np.array([[0.0], [0.0], [0.0], [1.0]])
    assert np.isinf(epsilons_among_equals(rows, 2, 0.01)[3])
    assert np.isinf(epsilons_among_equals(rows, 2, 0.0)).all()


def test_a_histogram_with_little_noise_hides_people_among_their_equals():
    ages = np.repeat([20.0, 40.0, 80.0], [100, 140, 160])
    cells = wi.population.Histogram([0, 30, 60, 120])
    found = wi.population.gaussian(ages, epsilon=8.0, delta=0.01, query=cells)
    pairs = wi.population.gaussian(ages, epsilon=8.0, delta=0.01, query=cells, method="pairwise")
    assert found.at_least <= found.pmp.epsilon < 0.25
    assert pairs.pmp.epsilon > 2.0
    assert (found.per_record <= pairs.per_record).all()


def test_certified_draws_are_no_worse_than_equals():
    votes = np.repeat([-1.0, 0.0, 1.0], [300, 400, 500])
    found = wi.population.exponential(
        votes, [[-1.0], [0.0], [1.0]], epsilon=500.0, clip=1.0, delta=1e-3, method="monte_carlo", draws=64, rng=0
    )
    assert (found.per_record <= epsilons_among_equals(votes[:, None], 600, 1e-3)).all()
