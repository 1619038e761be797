"""The paper's scale and its repaired algorithm, kept for comparison."""

import numpy as np
import pytest

from experiments.izzo.noise import izzo_noise, paper_scale
from whosin.errors import InputError, InputTypeError
from whosin.protection import protect


@pytest.mark.parametrize(("eta", "scale"), [(0.05, 15178.24), (0.1, 3794.56), (0.25, 607.1296)])
def test_paper_scale(eta, scale):
    assert paper_scale(eta, 1.0) == pytest.approx(scale)
    assert paper_scale(eta, 5**0.5) == pytest.approx(scale * 5**0.5)


@pytest.mark.parametrize(
    ("eta", "ratio"), [(0.01, 7665.8), (0.05, 1599.2), (0.1, 846.73), (0.25, 420.83), (0.4, 381.69)]
)
def test_the_paper_asks_for_hundreds_of_times_more(eta, ratio):
    ours = protect("median", [1.0, 2.0], eta=eta, noise="norm_exponential", moment_bound=1.0).certificate.noise_scale
    assert paper_scale(eta, 1.0) / ours == pytest.approx(ratio, rel=1e-4)


def test_higher_moments():
    assert paper_scale(0.1, 1.0, 4.0) == pytest.approx(61.6**1.5)


def test_algorithm_1_repaired():
    """σ over subsets of the pool is that of the mean of half of it: √(S²/n), S² the variance with divisor n - 1."""
    pool = np.random.default_rng(0).standard_normal((40, 2)) * [1.0, 5.0]
    scales = izzo_noise(lambda rows: rows.mean(axis=0), pool, eta=0.1, subsets=4000, rng=1)
    sigma = pool.std(axis=0, ddof=1) / np.sqrt(40)
    assert scales == pytest.approx(3794.56 * np.sqrt(2) * sigma, rel=0.05)


def test_bad_input():
    with pytest.raises(InputError, match="eta must be"):
        paper_scale(0.0, 1.0)
    with pytest.raises(InputError, match="sigma must be"):
        paper_scale(0.1, -1.0)
    with pytest.raises(InputError, match="moment must be"):
        paper_scale(0.1, 1.0, 1.0)
    with pytest.raises(InputTypeError, match="izzo_noise needs"):
        izzo_noise("mean", [1.0, 2.0], eta=0.1)
