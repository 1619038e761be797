"""Where floats end, and where the training could tell more than the noise hides."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.svm import SVC, LinearSVR

from experiments.izzo.noise import izzo_noise
from whosin.errors import CalibrationError, InputError, InputTypeError
from whosin.mechanisms.secure import SeededSource
from whosin.numerics.shift import AveragedShift, lengths
from whosin.protection import SumQuery, protect
from whosin.protection.plan import Ball

COLUMN = np.random.default_rng(0).standard_normal(40)


def exact_excess(values, n, k):
    """The best attacker's excess where the values are released without noise."""
    worst = Fraction(0)
    for record in range(n):
        seen = {}
        for members, value in values.items():
            seen.setdefault(value, [0, 0])[record in members] += 1
        worst = max(worst, Fraction(sum(map(max, seen.values())), len(values)))
    return worst - Fraction(max(k, n - k), n)


def test_records_that_differ_by_less_than_the_centre_can_show_are_told_apart():
    """Without noise the first two records would be known by their values: an excess of 0.2, not of 0.15."""
    pool = np.array([1e-20, 2e-20, 1.0, 1.0, 1.0])
    certificate = protect("mean", pool, eta=0.16, train_fraction=0.2).certificate
    bare = {members: pool[list(members)].mean() for members in combinations(range(5), 1)}
    assert exact_excess(bare, 5, 1) == Fraction(1, 5)
    assert certificate.noise_scale > 1e-20


def test_labels_say_what_is_equal():
    rounded = np.array([[0.0], [0.0], [1.0]])
    shift = AveragedShift(rounded, noise="gaussian", rounding=1e-16, labels=np.array([0, 1, 2]))
    assert shift.worst(0.0) == 1.0
    assert shift.mean_distances[0] == pytest.approx(0.5)


@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
@pytest.mark.parametrize(
    "rows",
    [
        COLUMN * 1e-320,
        np.column_stack([COLUMN * 1e-320, COLUMN * 1e-322]),
        np.array([0.0, 5e-324] * 5),
        np.column_stack([COLUMN * 1e-200, COLUMN * 1e200]),
    ],
    ids=["subnormal", "subnormal columns", "smallest", "far apart"],
)
def test_sums_that_floats_cannot_resolve_are_refused(rows, noise):
    with pytest.raises(InputError, match="rescale"):
        protect("mean", rows, eta=0.1, noise=noise)


@pytest.mark.parametrize("split", ["total", "relative"])
@pytest.mark.parametrize("units", [[1e-60, 1e60], [1e-160, 1e-299], [1e297, 1e148], [1e-299, 1e-299]])
def test_columns_in_very_different_units(split, units):
    rows = np.random.default_rng(1).standard_normal((40, 2))
    plain = protect("mean", rows, eta=0.1, split="relative").certificate.noise_scale
    scales = protect("mean", rows * units, eta=0.1, split=split).certificate.noise_scale
    assert np.all(np.isfinite(scales) & (scales > 0.0))
    if split == "relative":
        assert scales / units == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(
    ("centre", "radius", "shape"),
    [
        ([1e16], 1.2, 1.0),
        ([1.0], 3e-16, 1.0),
        ([1e16, -3.0, 0.0], 1.7, 1.0),
        ([5.0, 1e9], 1e-8, np.array([1.0, 3.0])),
    ],
)
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_the_ball_holds_what_was_pulled_into_it(centre, radius, shape, norm):
    """To the last digit, however far the centre is from 0: no two pulled estimates are further apart than 2R."""
    ball = Ball(np.array(centre), radius, shape, norm)
    rng = np.random.default_rng(2)
    for _ in range(50):
        value = ball.centre + rng.standard_normal(len(centre)) * 10.0 ** rng.integers(-20, 20)
        pulled = ball.pull(value)
        away = [(Fraction(x) - Fraction(c)) for x, c in zip(pulled.tolist(), centre, strict=True)]
        assert all(a * Fraction(v - c) >= 0 for a, v, c in zip(away, value.tolist(), centre, strict=True))
        scaled = [abs(a) / Fraction(s) for a, s in zip(away, np.broadcast_to(shape, len(centre)).tolist(), strict=True)]
        limit = Fraction(radius) * (1 if np.any(pulled != value) else 1 + Fraction(1, 10**13))
        if norm == 1.0:
            assert sum(scaled) <= limit
        elif norm == 2.0:
            assert sum(s * s for s in scaled) <= limit**2
        else:
            assert max(scaled) <= limit


def test_an_estimate_beyond_all_floats_is_pulled_to_the_centre():
    ball = Ball(np.array([1.0, 2.0]), 1.0, np.array([1e-200, 1.0]), 2.0)
    assert ball.pull(np.array([1e200, 0.0])).tolist() == [1.0, 2.0]


def test_lengths_of_infinite_vectors():
    assert lengths(np.array([[math.inf, 1.0], [-math.inf, math.inf]]), 2.0).tolist() == [math.inf, math.inf]


def test_a_coordinate_that_hardly_moves_in_the_pilot_and_much_later():
    """Its distance in units of the pilot's spread is beyond all floats, and counts as infinite."""
    state = {"calls": 0}

    def wild(rows):
        state["calls"] += 1
        return [1e-200 * rows.mean(), 1e200 if state["calls"] == 100 else rows.mean()]

    certificate = protect(
        lambda rows: [1e-200 * rows.mean(), rows.mean()], COLUMN, eta=0.2, rng=0, split="relative"
    ).certificate
    assert np.all(certificate.noise_scale > 0.0)
    assert np.all(protect(wild, COLUMN, eta=0.2, rng=0, split="relative").certificate.noise_scale > 0.0)


def test_a_training_that_fails_after_the_pilot():
    """It is counted and told as it was, not taken for an estimate."""
    state = {"calls": 0}

    def moody(rows):
        state["calls"] += 1
        if state["calls"] == 100:
            raise ValueError("not today")
        return rows.mean()

    with pytest.raises(InputError, match=r"failed on 1 of \d+ certification subsets; the first time: .*not today"):
        protect(moody, COLUMN, eta=0.2, rng=0)


def test_certificates_name_their_noise():
    kinds = ("gaussian", "norm_exponential")
    texts = {noise: str(protect("mean", COLUMN, eta=0.2, noise=noise).certificate) for noise in kinds}
    assert "Gaussian noise of standard deviation" in texts["gaussian"]
    assert "noise of density ∝ exp" in texts["norm_exponential"]


# --- η and the scale -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
@pytest.mark.parametrize("eta", [math.nextafter(0.5, 0.0), 0.3, 1e-9, 1e-12])
@pytest.mark.parametrize("options", [{}, {"adjacent_bound": 1.0}, {"moment_bound": 1.0}])
def test_the_bound_is_at_most_eta(eta, noise, options):
    certificate = protect("mean", COLUMN, eta=eta, noise=noise, **options).certificate
    assert 0.0 < certificate.bound <= eta
    assert math.isfinite(certificate.noise_scale)


@pytest.mark.parametrize("eta", [9e-13, 1e-100, 5e-324])
def test_promises_below_the_precision_of_the_noise_are_refused(eta):
    with pytest.raises(InputError, match=r"eta must be a number of at least 1e-12"):
        protect("mean", COLUMN, eta=eta)


@pytest.mark.parametrize(
    "options", [{"adjacent_bound": 1e300}, {"moment_bound": 1e300}, {"ball": (0.0, 1e300), "subsets": 0}]
)
@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
def test_noise_beyond_all_floats_is_refused_before_anything_is_drawn(options, noise):
    calls = []

    def mean(rows):
        calls.append(len(rows))
        return rows.mean()

    with pytest.raises(CalibrationError, match="largest float"):
        protect(mean, COLUMN, eta=1e-10, noise=noise, **options)
    assert not calls


# --- what a training returns -----------------------------------------------------------------------------------------


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1.0 + 1j]), "ndarray, not an array of numbers"),
        (None, "NoneType, not an array of numbers"),
        ("3.5", "str, not an array of numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "ndarray, not an array of numbers"),
        (NoArray(), "NoArray, not an array of numbers"),
        ([None, 1.0], "1 numbers that are not finite"),
        (1e301, r"a number beyond 1e\+300"),
    ],
    ids=["complex", "none", "text", "dates", "no array", "holes", "huge"],
)
def test_what_is_no_array_of_numbers(value, message):
    with pytest.raises(InputError, match=f"failed on 64 of 64 pilot subsets; the first time: it returned {message}"):
        protect(lambda rows: value, COLUMN, eta=0.2, rng=0)


@pytest.mark.parametrize("value", [True, 3, np.float32(1.5), np.int8(4), [Fraction(1, 2)], np.array(2.0)])
def test_what_is_one(value):
    assert np.all(np.isfinite(protect(lambda rows: value, COLUMN, eta=0.2, rng=0).value))


def test_complex_contributions():
    with pytest.raises(InputTypeError, match="f must be a function that returns numbers"):
        protect(SumQuery(lambda rows: rows + 1j), COLUMN, eta=0.2)


def test_the_covariance_of_single_records():
    with pytest.raises(InputError, match="covariance of 1 record"):
        protect("cov", [1.0, 2.0, 3.0], eta=0.2, rng=0)


@pytest.mark.parametrize("records", [range(20), pa.array(range(20)), pa.chunked_array([range(9), range(11)])])
def test_any_sequence_is_a_pool(records):
    release = protect(lambda rows: len(rows), records, eta=0.2, rng=0)
    assert (release.value, release.certificate.records) == (10.0, 20)


def test_a_failure_on_the_drawn_records_comes_with_a_warning():
    """That it failed, and how, is a function of the draw without noise: nobody else may learn of it."""
    with pytest.raises(InputError, match=r"failed on the drawn records: ValueError: .*oh.*may tell who was drawn"):
        protect(lambda rows: float("oh"), COLUMN, eta=0.2, adjacent_bound=1.0)
    for options in ({"adjacent_bound": 1.0}, {"ball": (0.0, 1.0), "subsets": 0}, {"rng": 0}):
        assumes = protect("median", COLUMN, eta=0.2, **options).certificate.assumes
        assert any("fail" in line for line in assumes)
    assert not any("fail" in line for line in protect("mean", COLUMN, eta=0.2).certificate.assumes)


def test_pilot_trainings_count_with_a_ball_too():
    assert protect("median", COLUMN, eta=0.2, ball=1.0, subsets=0, rng=0).certificate.draws == 16
    assert protect("median", COLUMN, eta=0.2, ball="pilot", subsets=0, rng=0).certificate.draws == 16
    assert protect("median", COLUMN, eta=0.2, ball=(0.0, 1.0), subsets=0).certificate.draws == 0


@pytest.mark.parametrize("rng", [-1, "seed", 1.5, np.random.RandomState(0)])
def test_bad_seeds(rng):
    with pytest.raises((InputError, InputTypeError), match="rng must be a seed"):
        protect("median", COLUMN, eta=0.2, rng=rng)


def test_bad_progress():
    with pytest.raises(InputTypeError, match="progress must be"):
        protect("median", COLUMN, eta=0.2, progress=3)


# --- models ----------------------------------------------------------------------------------------------------------

X = np.random.default_rng(3).standard_normal((60, 3))


def test_coefficients_that_cannot_be_set():
    with pytest.raises(InputTypeError, match="predicts from coef_ and intercept_ alone, got SVC"):
        protect(SVC(kernel="linear"), (X, X[:, 0] > 0), eta=0.2)


@pytest.mark.parametrize("model", [SGDRegressor(), LinearSVR()])
def test_the_intercept_keeps_its_shape(model):
    target = X @ [1.0, 2.0, 3.0]
    fitted = protect(model, (X, target), eta=0.2, subsets=40, rng=0).value
    assert np.shape(fitted.intercept_) == np.shape(type(model)().fit(X, target).intercept_)
    assert fitted.predict(X).shape == (60,)


@pytest.mark.parametrize("model", [SGDRegressor(random_state=0), Ridge()])
def test_weights_are_weights(model):
    """Also where the third argument of fit is something else."""
    target = X @ [1.0, 2.0, 3.0]
    weights = np.linspace(0.1, 2.0, 60)
    release = protect(
        model, (X, target, weights), eta=0.2, adjacent_bound=1e-9, keep_training=True, testing_source=SeededSource(0)
    )
    drawn = release.training
    fitted = clone(model).fit(X[drawn], target[drawn], sample_weight=weights[drawn])
    assert release.value.coef_ == pytest.approx(fitted.coef_, abs=1e-6)


def test_models_take_three_parts_at_most():
    with pytest.raises(InputError, match=r"records must be X, \(X, y\) or \(X, y, sample_weight\).*got 4 parts"):
        protect(Ridge(), (X, X[:, 0], X[:, 0], X[:, 0]), eta=0.2)


# --- the scale of the paper ------------------------------------------------------------------------------------------


def test_the_scale_of_the_paper_needs_one_shape_and_a_promise():
    calls = []
    with pytest.raises(InputError, match=r"shape \(\d,\), on other subsets \(\d,\)"):
        izzo_noise(lambda rows: rows[rows < 5], np.arange(10), eta=0.2, subsets=30, rng=0)
    with pytest.raises(InputError, match="eta must be a number"):
        izzo_noise(lambda rows: calls.append(1), COLUMN, eta=2.0)
    assert not calls
