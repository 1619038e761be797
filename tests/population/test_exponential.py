"""The exponential mechanism on a pool: progress, journal, rounding, and a sensitivity that the records contradict."""

import itertools
import math
from importlib import import_module

import mpmath
import numpy as np
import pytest

import whosin as wi
from whosin.errors import InputError, InputTypeError
from whosin.numerics.finite_laws import closeness_epsilons, closeness_slopes
from whosin.population.exponential.adjacent import range_bound

MODULE = import_module("whosin.population.exponential.analysis")  # the package has a function of that name

POOL = np.random.default_rng(0).standard_normal((16, 1))
TWO = [[1.0], [-1.0]]
COMMON = {"epsilon": 4.0, "clip": 3.0}


@pytest.mark.parametrize("method", ["exact", "monte_carlo", "two_outcomes"])
def test_progress_rises_to_one(method):
    shares = []
    wi.population.exponential(POOL, TWO, method=method, draws=500, rng=1, progress=shares.append, **COMMON)
    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0


@pytest.mark.parametrize("method", ["exact", "monte_carlo", "two_outcomes"])
def test_progress_takes_a_function(method):
    with pytest.raises(InputTypeError, match=r"^progress must be"):
        wi.population.exponential(POOL, TWO, method=method, progress=3, **COMMON)


def test_a_journal_answers_the_same_run_again(tmp_path):
    options = np.random.default_rng(1).standard_normal((4, 1))
    path = tmp_path / "run.npz"
    first, second = (
        wi.population.exponential(POOL, options, method="exact", journal=str(path), **COMMON) for _ in range(2)
    )
    assert path.exists()
    np.testing.assert_array_equal(first.per_record, second.per_record)


# --- limits lie on the safe side ------------------------------------------------------------------------------------


def exact_epsilons(logits, k, delta):
    """Every record's ε̃ by the definition, in 40 digits: the smallest slope of both directions."""
    n, m = logits.shape
    with mpmath.workdps(40):
        weights = [[mpmath.exp(-mpmath.mpf(float(value))) for value in row] for row in logits]
        laws = {}
        for chosen in itertools.combinations(range(n), k):
            scores = [mpmath.fprod(weights[i][w] for i in chosen) for w in range(m)]
            laws[chosen] = [score / mpmath.fsum(scores) for score in scores]
        found = []
        for x in range(n):
            inside, outside = (
                [mpmath.fsum(law[w] for chosen, law in laws.items() if (x in chosen) == side) for w in range(m)]
                for side in (True, False)
            )
            inside = [value / math.comb(n - 1, k - 1) for value in inside]
            outside = [value / math.comb(n - 1, k) for value in outside]
            slopes = [mpmath.mpf(1)]
            for p, q in ((inside, outside), (outside, inside)):
                order = sorted(range(m), key=lambda w, p=p, q=q: -p[w] / q[w])
                for last in range(1, m + 1):
                    tpr = mpmath.fsum(p[w] for w in order[:last])
                    slopes.append((tpr - mpmath.mpf(delta)) / mpmath.fsum(q[w] for w in order[:last]))
            found.append(mpmath.log(max(slopes)))
        return found


@pytest.mark.parametrize(("method", "candidates"), [("exact", 4), ("exact", 2), ("two_outcomes", 2)])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05])
@pytest.mark.parametrize("epsilon", [0.01, 3.0, 60.0])
def test_limits_enclose_the_truth_to_the_last_digit(method, candidates, delta, epsilon):
    rng = np.random.default_rng(7)
    losses = rng.random((8, candidates))
    result = wi.population.exponential(
        losses, np.zeros((candidates, 1)), epsilon=epsilon, clip=5.0, delta=delta, loss=losses, sensitivity=0.25,
        method=method,
    )  # fmt: skip
    for lower, truth, upper in zip(
        result.per_record_lower,
        exact_epsilons(result.noise_scale * losses / 4, 4, delta),
        result.per_record,
        strict=True,
    ):
        assert lower <= truth <= upper
        assert upper - lower <= 1e-9


@pytest.mark.parametrize("method", ["exact", "two_outcomes"])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [600.0, 3e3, 3e4])
def test_limits_enclose_a_truth_beyond_the_largest_float(method, delta, epsilon):
    """e^ε̃ is no float from 709.8 on, and probabilities below e^-745 are none either."""
    losses = np.array([[0.0, 0.3], [0.1, 0.35], [0.05, 0.3], [1.0, 0.0], [0.15, 0.4], [0.0, 0.2]])
    result = wi.population.exponential(
        losses, np.zeros((2, 1)), epsilon=epsilon, clip=5.0, delta=delta, loss=losses, sensitivity=1 / 3, method=method
    )
    truths = exact_epsilons(result.noise_scale * losses / 3, 3, delta)
    assert max(truths) > epsilon / 10
    for lower, truth, upper in zip(result.per_record_lower, truths, result.per_record, strict=True):
        assert lower <= truth <= upper
        if method == "exact":
            assert upper - lower <= 1e-10 * epsilon


def test_closeness_in_logarithms_is_that_of_the_slopes():
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.full(5, 0.3), size=(2, 200))
    p[0], q[1, 0] = [0.0, 0.5, 0.5, 0.0, 0.0], 0.0
    for delta in (1e-9, 0.1, 0.7):
        with np.errstate(divide="ignore"):
            expected = np.log(closeness_slopes(p, q, delta))
            assert closeness_epsilons(np.log(p), np.log(q), delta) == pytest.approx(expected, abs=1e-12)


def test_delta_close_to_a_whole_outcome_does_not_hide_an_error():
    """Where δ all but covers the worst outcome, a small error of its probability is a large one of the slope."""
    p, q = np.array([[1e-3, 1.0 - 1e-3]]), np.array([[1e-12, 1.0 - 1e-12]])
    error, delta = 1e-9, 1e-3 * (1.0 - 1e-11)
    lower, upper = MODULE._limits(np.log(p), np.log(q), np.full(1, error), delta)
    for sign in (-1.0, 1.0):
        worst = p[0, 0] * math.exp(sign * error)
        truth = math.log(max((worst - delta) / q[0, 0], 1.0))
        assert lower[0] <= truth <= upper[0]


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_where_all_digits_are_lost_the_range_takes_over(monkeypatch, delta):
    def lost(h, offset, k):
        return np.full((len(h), 4), -np.inf), np.full((len(h), 4), np.inf)

    monkeypatch.setattr(MODULE, "two_outcome_log_laws", lost)
    result = wi.population.exponential(POOL, TWO, method="two_outcomes", delta=delta, **COMMON)
    losses = np.abs(POOL - np.array([[1.0, -1.0]]))
    assert result.per_record == pytest.approx(range_bound(result.noise_scale * losses / 8)[1], rel=1e-11)
    assert np.all(result.per_record_lower == 0.0)


# --- a sensitivity that these records contradict ----------------------------------------------------------------------


def test_a_sensitivity_below_what_the_records_show_is_refused():
    losses = np.abs(np.arange(6.0)[:, None] - np.array([0.0, 2.0]))
    given = {"candidates": [0.0, 2.0], "epsilon": 1.0, "clip": 10.0, "loss": losses}
    shown = 5.0 / 3.0
    assert wi.population.exponential(np.arange(6.0), sensitivity=shown, **given).sensitivity == shown
    for too_small in (0.0, 0.9 * shown):
        with pytest.raises(InputError, match=r"sensitivity must be at least 1\.66667"):
            wi.population.exponential(np.arange(6.0), sensitivity=too_small, **given)
    with pytest.raises(InputError, match="sensitivity must be at least"):
        wi.population.exponential(np.arange(6.0), [0.0, 2.0], epsilon=1.0, clip=10.0, sensitivity=0.1)


@pytest.mark.parametrize("loss", ["distance", "squared"])
def test_the_parameters_are_in_order_for_every_clip(loss):
    """ε̃ ≤ ε(X) ≤ range bound ≤ label."""
    pool = np.random.default_rng(3).standard_normal((10, 2))
    for clip in (0.1, 1.0, 10.0):
        result = wi.population.exponential(pool, np.eye(2), epsilon=3.0, clip=clip, loss=loss)
        chain = [
            result.per_record_lower.max(),
            *(x.epsilon for x in (result.dp_on_records, result.dp_at_most, result.dp)),
        ]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(chain))
