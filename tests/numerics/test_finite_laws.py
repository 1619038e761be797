"""How close two finite laws are, against the definition."""

import numpy as np
import pytest

from whosin.numerics.finite_laws import closeness_epsilons, closeness_slopes


def laws(seed, rows=20, outputs=6):
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(outputs, 0.7), size=rows) for _ in range(2))
    return p, q


def excess(p, q, slope):
    return np.maximum(p - slope[:, None] * q, 0.0).sum(axis=1)


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_the_slope_is_the_smallest_that_leaves_delta(seed, delta):
    p, q = laws(seed)
    slope = closeness_slopes(p, q, delta)
    assert np.all(excess(p, q, slope) <= delta * (1 + 1e-9))
    assert np.all(excess(p, q, slope * (1 - 1e-6)) > delta)
    logs = closeness_epsilons(np.log(p), np.log(q), delta)
    assert logs == pytest.approx(np.log(slope), abs=1e-9)


def test_without_delta_it_is_the_largest_ratio():
    p, q = laws(9)
    assert closeness_slopes(p, q, 0.0) == pytest.approx((p / q).max(axis=1))


def test_outside_the_support_and_all_within_delta():
    p, q = np.array([[0.5, 0.5, 0.0], [0.05, 0.95, 0.0]]), np.array([[0.5, 0.0, 0.5], [0.0, 0.95, 0.05]])
    assert closeness_slopes(p, q, 0.1).tolist() == [np.inf, pytest.approx((1.0 - 0.1) / 0.95)]
    with np.errstate(divide="ignore"):
        assert closeness_epsilons(np.log(p), np.log(q), 0.1)[0] == np.inf
        assert closeness_epsilons(np.log(p), np.log(q), 1.0).tolist() == [-np.inf, -np.inf]
    assert len(closeness_slopes(p[:0], q[:0], 0.1)) == len(closeness_epsilons(p[:0], q[:0], 0.1)) == 0


def test_ratios_beyond_floats():
    log_p, log_q = np.log([[0.5, 0.5]]), np.array([[-2000.0, 0.0]])
    assert closeness_epsilons(log_p, log_q, 0.25)[0] == pytest.approx(2000.0 + np.log(0.25))
