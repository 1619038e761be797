"""What protect takes and gives: estimators, records, results, errors."""

import json
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from whosin import MIP
from whosin.errors import CalibrationError, InputError, InputTypeError
from whosin.mechanisms.secure import SecureSource, SeededSource
from whosin.protection import Certificate, Release, SumQuery, protect

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((40, 3)) * [1.0, 10.0, 0.1]
COLUMN = MATRIX[:, 0]


def seeded(seed=0):
    return SeededSource(seed)


def column_means(rows):
    return np.asarray(rows).mean(axis=0)


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_release_is_the_estimate_on_the_draw_plus_noise_of_the_scale():
    """Over many seeds the noise has the scale that the certificate states, coordinate by coordinate."""
    noise = []
    for seed in range(120):
        release = protect("mean", MATRIX, eta=0.2, testing_source=seeded(seed), keep_training=True)
        noise.append(release.value - MATRIX[release.training].mean(axis=0))
    found = np.std(noise, axis=0) / release.certificate.noise_scale
    assert found == pytest.approx(np.ones(3), abs=0.3)


def test_norm_exponential_noise_has_a_gamma_radius():
    radius = []
    for seed in range(100):
        release = protect(
            "mean", MATRIX, eta=0.2, noise="norm_exponential", norm=1, testing_source=seeded(seed), keep_training=True
        )
        radius.append(np.abs(release.value - MATRIX[release.training].mean(axis=0)).sum())
    assert np.mean(radius) / release.certificate.noise_scale == pytest.approx(3.0, abs=0.7)


def test_the_draw_is_uniform():
    counts = np.zeros(40)
    for seed in range(100):
        counts[protect("mean", COLUMN, eta=0.2, testing_source=seeded(seed), keep_training=True).training] += 1
    assert np.all(np.abs(counts - 50) < 5 * math.sqrt(25))


@pytest.mark.parametrize(
    ("estimator", "records", "shape"),
    [
        ("mean", COLUMN, ()),
        ("mean", MATRIX, (3,)),
        ("sum", MATRIX, (3,)),
        ("median", COLUMN.tolist(), ()),
        ("median", MATRIX, (3,)),
        ("cov", COLUMN, ()),
        ("cov", MATRIX, (3, 3)),
        ("cov", MATRIX[:, :1], ()),
        (SumQuery(lambda x: x[:, :, None] * x[:, None, :]), MATRIX, (3, 3)),
        (lambda x: x[:4, :2] * 0 + 1, MATRIX, (4, 2)),
        (lambda x: [float(np.max(x))], COLUMN, (1,)),
    ],
)
def test_shapes_come_back(estimator, records, shape):
    release = protect(estimator, records, eta=0.2, subsets=64, rng=0)
    assert np.shape(release.value) == shape
    assert isinstance(release.value, np.ndarray if shape else float)
    assert np.all(np.isfinite(release.value))


def test_the_covariance_is_symmetric_and_noise_falls_once_on_each_number():
    release = protect("cov", MATRIX, eta=0.2, rng=0)
    assert np.array_equal(release.value, release.value.T)
    assert release.certificate.noise_scale.shape == (3, 3)
    assert np.array_equal(release.certificate.noise_scale, release.certificate.noise_scale.T)


def test_a_sum_is_k_times_a_mean():
    mean, total = (protect(name, MATRIX, eta=0.1).certificate.noise_scale for name in ("mean", "sum"))
    assert total == pytest.approx(20 * mean, rel=1e-6)


def test_a_mean_by_name_and_by_query_agree():
    one = protect("mean", MATRIX, eta=0.1).certificate
    other = protect(SumQuery(lambda x: x), MATRIX, eta=0.1).certificate
    assert other.noise_scale == pytest.approx(one.noise_scale)
    assert protect(SumQuery(), MATRIX, eta=0.1).certificate.noise_scale == pytest.approx(one.noise_scale)


@pytest.mark.parametrize("estimator", ["mean", "median"])
def test_units_do_not_matter(estimator):
    """A column in other units gets noise in those units, and the others keep theirs."""
    plain, other = (
        protect(estimator, MATRIX * [1.0, 1.0, factor], eta=0.2, rng=0, split="relative").certificate.noise_scale
        for factor in (1.0, 1e6)
    )
    assert other == pytest.approx(plain * [1.0, 1.0, 1e6], rel=1e-6)


@pytest.mark.parametrize("estimator", ["mean", "median"])
def test_the_total_split_has_less_noise_in_total(estimator):
    relative, total = (
        protect(estimator, MATRIX, eta=0.2, rng=0, split=split).certificate.noise_scale
        for split in ("relative", "total")
    )
    assert np.sum(total**2) < np.sum(relative**2)
    assert total[2] / relative[2] > 3
    shape = total / np.sqrt(relative)
    assert shape == pytest.approx(np.full(3, shape[0]), rel=1e-6)


def test_tiny_numbers():
    plain = protect("mean", MATRIX, eta=0.1).certificate.noise_scale
    tiny = protect("mean", MATRIX * 1e-200, eta=0.1).certificate.noise_scale
    assert tiny == pytest.approx(plain * 1e-200, rel=1e-6)


@pytest.mark.parametrize(
    "records",
    [
        MATRIX,
        MATRIX.tolist(),
        pd.DataFrame(MATRIX, columns=list("abc"), index=range(100, 140)),
        pl.DataFrame(MATRIX, schema=list("abc")),
        pa.table({name: MATRIX[:, i] for i, name in enumerate("abc")}),
    ],
    ids=["array", "list", "pandas", "polars", "arrow"],
)
def test_a_function_gets_the_type_of_the_records(records):
    seen = set()

    def estimate(rows):
        seen.add((type(rows), len(rows)))
        return np.asarray(rows if not isinstance(rows, pa.Table) else rows.to_pandas()).mean(axis=0)

    release = protect(estimate, records, eta=0.2, subsets=40, rng=0)
    assert seen == {(type(records), 20)}
    assert release.value.shape == (3,)


def test_aligned_parts_go_to_the_function_one_by_one():
    target = MATRIX @ [1.0, 0.1, 5.0]

    def slope(x, y):
        assert x.shape == (20, 3)
        assert y.shape == (20,)
        assert np.allclose(x @ [1.0, 0.1, 5.0], y)
        return np.linalg.lstsq(x, y, rcond=None)[0]

    assert protect(slope, (MATRIX, target), eta=0.2, subsets=40, rng=0).value.shape == (3,)
    assert protect(SumQuery(lambda x, y: x * y[:, None]), (MATRIX, target), eta=0.2).value.shape == (3,)


def test_a_random_function_gets_a_generator():
    def noisy_mean(rows, *, rng):
        return rows.mean() + rng.standard_normal()

    one, two = (protect(noisy_mean, COLUMN, eta=0.2, subsets=40, rng=5).certificate for _ in range(2))
    assert one.noise_scale == two.noise_scale > 0


def test_seeds_and_processes():
    one = protect(column_means, MATRIX, eta=0.2, subsets=40, rng=5).certificate.noise_scale
    two = protect(column_means, MATRIX, eta=0.2, subsets=40, rng=5, n_jobs=2).certificate.noise_scale
    other = protect(column_means, MATRIX, eta=0.2, subsets=40, rng=6).certificate.noise_scale
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_secure_releases_differ():
    values = {protect("mean", COLUMN, eta=0.2, rng=0).value for _ in range(3)}
    assert len(values) == 3


# --- routes ----------------------------------------------------------------------------------------------------------


def test_replacements_need_less_noise_than_the_spread():
    moment = protect("median", COLUMN, eta=0.2, sensitivity="moment", rng=0).certificate
    average = protect("median", COLUMN, eta=0.2, sensitivity="average", subsets=60, rng=0).certificate
    assert average.noise_scale < 0.6 * moment.noise_scale
    assert average.draws > moment.draws


def test_sums_by_pairs_need_less_noise_than_by_replacements_and_those_less_than_by_the_spread():
    exact = protect("mean", COLUMN, eta=0.1).certificate.noise_scale
    replaced = protect(np.mean, COLUMN, eta=0.1, sensitivity="average", subsets=200, rng=0).certificate.noise_scale
    spread = protect(np.mean, COLUMN, eta=0.1, rng=0).certificate.noise_scale
    assert exact < replaced < 1.5 * exact
    assert replaced < spread


def test_auto_takes_the_pilot_ball_where_it_saves_noise():
    auto = protect("median", COLUMN, eta=0.03, rng=0).certificate
    free = protect("median", COLUMN, eta=0.03, rng=0, sensitivity="moment", subsets=256).certificate
    assert auto.ball is not None
    assert free.ball is None
    assert auto.noise_scale < 0.8 * free.noise_scale


def test_a_ball_certifies_what_draws_alone_cannot():
    with pytest.raises(CalibrationError, match="it takes at least 801"):
        protect("median", COLUMN, eta=0.005, sensitivity="moment")
    assert protect("median", COLUMN, eta=0.005, sensitivity="moment", ball="pilot", rng=0).certificate.bound <= 0.005
    assert protect("median", COLUMN, eta=0.005, rng=0).certificate.ball is not None


def test_a_tight_ball_is_used_as_it_is():
    """Where the ball alone needs less noise than the draws can certify, no confidence is claimed."""
    certificate = protect("median", COLUMN, eta=0.2, ball=(5.0, 0.01), subsets=20, rng=0).certificate
    assert certificate.kind == "deterministic (ball)"
    assert certificate.confidence_level is None
    assert certificate.noise_scale == pytest.approx(0.01 / 0.5244, rel=1e-3)


def test_a_given_ball_is_pulled_into():
    release = protect("median", COLUMN, eta=0.45, ball=(1e6, 1.0), subsets=0, testing_source=seeded(1))
    assert abs(release.value - 1e6) < 20
    radius = protect("median", COLUMN, eta=0.2, ball=0.5, rng=0).certificate
    assert radius.ball == 0.5


def test_estimates_of_other_sizes_of_draw():
    for fraction in (0.1, 0.3, 0.5, 0.9):
        certificate = protect("mean", COLUMN, eta=0.05, train_fraction=fraction).certificate
        assert certificate.train_size == round(40 * fraction)
        assert certificate.mip == MIP(0.05, certificate.train_size / 40)
    assert protect("mean", COLUMN[:39], eta=0.05).certificate.train_size == 19


def test_duplicated_records_are_records():
    assert protect("mean", [0.0, 0.0, 0.0, 1.0], eta=0.1).certificate.noise_scale > 0


# --- constants -------------------------------------------------------------------------------------------------------


def test_a_constant_sum_needs_no_noise_and_says_so():
    release = protect("mean", [3.0] * 10, eta=0.1)
    assert release.value == 3.0
    assert release.certificate.noise_scale == 0.0
    assert release.certificate.bound == 0.0
    assert release.certificate.sensitivity == 0.0
    assert "no noise, for none is needed" in release.certificate.explain()


@pytest.mark.parametrize("noise", ["gaussian", "norm_exponential"])
def test_a_constant_column_needs_no_noise(noise):
    release = protect("mean", np.column_stack([COLUMN, np.full(40, 2.5)]), eta=0.1, noise=noise)
    assert release.value[1] == 2.5
    assert release.value[0] != pytest.approx(COLUMN.mean(), abs=1e-9)
    assert release.certificate.noise_scale[1] == 0.0


def test_equal_halves_of_a_sum_are_added_up_without_regard_to_order():
    """At η = 0.4 two groups of equal records need no noise, and the sum tells their numbers only, not their order."""
    release = protect("sum", [0.1, 0.3] * 20, eta=0.4, testing_source=seeded(1), keep_training=True)
    assert release.certificate.noise_scale == 0.0
    odd = int(np.sum(release.training % 2))
    assert release.value == math.fsum([0.1] * (20 - odd) + [0.3] * odd)


def test_a_constant_black_box_needs_no_noise_if_enough_draws_say_so():
    release = protect(lambda rows: 7.0, COLUMN, eta=0.1, rng=0)
    assert release.value == 7.0
    assert release.certificate.noise_scale == 0.0
    assert release.certificate.confidence_level == 0.95


def test_a_black_box_that_seldom_moves_needs_no_noise_and_one_that_often_does_needs_some():
    def holds(count):
        return lambda rows: float(set(range(count)) <= set(rows))

    assert protect(holds(6), list(range(40)), eta=0.2, rng=0, ball="pilot").certificate.noise_scale == 0.0
    assert protect(holds(2), list(range(40)), eta=0.1, rng=0).certificate.noise_scale > 0.0


def test_a_coordinate_that_never_moved_gets_noise_like_the_least_of_the_others():
    release = protect(lambda rows: [rows.mean(), 0.0, 100 * rows.mean()], COLUMN, eta=0.2, rng=0)
    scales = release.certificate.noise_scale
    assert scales[1] == pytest.approx(scales[0])
    assert scales[2] == pytest.approx(10 * scales[0], rel=1e-6)


# --- the certificate -------------------------------------------------------------------------------------------------


def test_a_certificate_says_everything():
    certificate = protect("median", MATRIX, eta=0.2, rng=0).certificate
    assert isinstance(certificate, Certificate)
    assert certificate.mip == MIP(0.2)
    assert (certificate.records, certificate.train_size, certificate.draws) == (40, 20, 320)
    assert certificate.confidence_level == 0.95
    assert certificate.route == "moment"
    assert certificate.estimator == "median"
    assert not certificate.test_mode
    assert SecureSource.name in certificate.sampler
    text = certificate.explain()
    assert "70%" in text
    assert "95% confidence" in text
    assert "safe" not in text
    assert any("compose" in line for line in certificate.not_protected)
    assert any("pool" in line for line in certificate.not_protected)
    assert any("probability 0.95" in line for line in certificate.assumes)
    assert "\n" not in str(certificate)
    assert "0.2-MIP" in str(certificate)
    assert "<ul>" in certificate._repr_html_()
    with pytest.raises(FrozenInstanceError):
        certificate.eta = 0.1


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_everything_is_json(norm):
    for estimator, options in (("mean", {}), ("median", {"rng": 0}), ("median", {"adjacent_bound": 1.0})):
        release = protect(estimator, MATRIX, eta=0.2, noise="norm_exponential", norm=norm, **options)
        shown = json.loads(json.dumps(release.to_dict(), allow_nan=False))
        assert np.shape(shown["value"]) == (3,)
        assert shown["certificate"]["bound"] <= 0.2


def test_the_drawn_records_stay_out_unless_asked_for():
    release = protect("mean", COLUMN, eta=0.2)
    assert isinstance(release, Release)
    assert release.training is None
    kept = protect("mean", COLUMN, eta=0.2, keep_training=True)
    assert len(kept.training) == 20
    assert "training" not in kept.to_dict()
    assert "training" not in repr(kept)
    assert "<pre>" in kept._repr_html_()


def test_test_mode_is_loud():
    release = protect("mean", COLUMN, eta=0.2, testing_source=seeded())
    assert release.certificate.test_mode
    assert "TEST MODE" in str(release)
    assert "nobody is protected" in release.certificate.explain()
    assert "TEST MODE" in release.certificate.assumes[0]
    assert release.value == protect("mean", COLUMN, eta=0.2, testing_source=seeded()).value


def test_proved_bounds_say_who_proved_them():
    certificate = protect("median", COLUMN, eta=0.2, adjacent_bound=0.5).certificate
    assert certificate.kind == "proved by the user"
    assert certificate.draws == 0
    assert any("bound that was given" in line for line in certificate.assumes)


def test_progress_rises_to_one():
    for options in ({}, {"sensitivity": "average", "subsets": 30}):
        seen = []
        protect("median", COLUMN, eta=0.2, rng=0, progress=seen.append, **options)
        assert seen == sorted(seen)
        assert seen[-1] == 1.0
        assert len(seen) > 20


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.0, 0.5, -0.1, 1.0, math.nan])
def test_eta_out_of_range(eta):
    with pytest.raises(InputError, match=r"eta must be a number in \(0, 0.5\)"):
        protect("mean", COLUMN, eta=eta)


def test_an_empty_promise_is_refused():
    with pytest.raises(InputError, match="every release would keep it"):
        protect("mean", COLUMN, eta=0.3, train_fraction=0.2)
    with pytest.raises(InputError, match=r"below 0.333333, got 0.4"):
        protect("mean", [1.0, 2.0, 3.0], eta=0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "laplace"}, "noise must be one of 'gaussian', 'norm_exponential'"),
        ({"split": "equal"}, "split must be one of 'total', 'relative'"),
        ({"norm": 1}, "norm must be 2 for Gaussian noise"),
        ({"norm": 0.5, "noise": "norm_exponential"}, "norm must be a number in"),
        ({"sensitivity": "worst"}, "sensitivity must be one of"),
        ({"moment_bound": -1.0}, "moment_bound must be a number in"),
        ({"adjacent_bound": math.inf}, "adjacent_bound must be a number in"),
        ({"adjacent_bound": math.nan}, "adjacent_bound must be a number in"),
        ({"adjacent_bound": 1.0, "moment_bound": 1.0}, "at most one of"),
        ({"adjacent_bound": 1.0, "ball": 1.0}, "at most one of"),
        ({"adjacent_bound": 1.0, "sensitivity": "average"}, "goes without adjacent_bound"),
        ({"adjacent_bound": 1.0, "sensitivity": "moment"}, "goes with moment_bound"),
        ({"ball": 1.0, "sensitivity": "average"}, "goes without ball"),
        ({"ball": 0.0}, "ball must be a number in"),
        ({"ball": "big"}, "ball must be 'pilot'"),
        ({"ball": (0.0, 1.0, 2.0)}, "ball must be 'pilot'"),
        ({"ball": (math.nan, 1.0)}, "centre of finite numbers"),
        ({"ball": ([0.0, 1.0], 1.0)}, "centre of 1 numbers"),
        ({"ball": (0.0, -1.0)}, "radius of ball must be a number"),
        ({"subsets": -1}, "subsets must be a whole number"),
        ({"subsets": 2.5}, "subsets must be a whole number"),
        ({"confidence_level": 1.0}, "confidence_level must be a number in"),
        ({"train_fraction": 0.0}, "train_fraction must be a number in"),
        ({"train_fraction": 0.999}, "train_fraction=0.999 of 40 records draws 40"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        protect("median", COLUMN, eta=0.2, **options)


@pytest.mark.parametrize("subsets", [0, 5, 10])
def test_too_few_subsets(subsets):
    with pytest.raises(CalibrationError, match=r"it takes at least 22.*larger eta, ball='pilot', or a bound"):
        protect("median", COLUMN, eta=0.2, subsets=subsets, sensitivity="moment")


def test_an_unstable_estimate_costs_noise():
    often = protect(lambda rows: 1e9 * (rows.mean() > 0), COLUMN, eta=0.1, rng=0, sensitivity="moment").certificate
    assert often.noise_scale > 1e8


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        ("mode", InputError, "estimator must be one of mean, sum, median, cov as text"),
        (3, InputTypeError, "estimator must be one of"),
        (None, InputTypeError, "estimator must be one of"),
        (dict, InputTypeError, "estimator must be one of"),
    ],
)
def test_bad_estimators(estimator, error, message):
    with pytest.raises(error, match=message):
        protect(estimator, COLUMN, eta=0.2)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "at least two records|at least 2 rows"),
        ([1.0], "at least two records|at least 2 rows"),
        ([1.0, math.nan, 2.0], "finite"),
        ([1.0, math.inf, 2.0], "finite"),
        (np.zeros((4, 0)), "at least 2 rows and one column"),
        (np.zeros((2, 2, 2)), "dimensions"),
        (["a", "b", "c"], "numbers"),
        (np.array([1e308, -1e308, 1e308]), "to be summed"),
    ],
)
def test_bad_records_of_a_mean(records, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        protect("mean", records, eta=0.2)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([1.0], "at least two records"),
        ((), "empty tuple"),
        ((COLUMN, COLUMN[:5]), r"one length, got lengths \[40, 5\]"),
        ((1.0, 2.0), "aligned parts"),
        ("text", "got str"),
        ({1: 2}, "got dict"),
        (5, "got int"),
        (np.array(3.0), "a single number"),
    ],
)
def test_bad_records_of_a_function(records, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        protect(lambda *parts: 1.0, records, eta=0.2)


def test_statistics_take_no_tuple():
    with pytest.raises(InputTypeError, match="got a tuple"):
        protect("mean", (COLUMN, COLUMN), eta=0.2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (SumQuery(lambda x: x.sum()), "one row per record"),
        (SumQuery(lambda x: x[:3]), "one row per record"),
        (SumQuery(lambda x: np.full(40, np.nan)), r"finite numbers, got \[nan\] at record 0 \(40 such\)"),
        (SumQuery(lambda x: ["a"] * 40), "returns numbers"),
        (SumQuery(lambda x: np.zeros((40, 0))), "at least one number"),
    ],
)
def test_bad_sum_queries(query, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        protect(query, COLUMN, eta=0.2)
    with pytest.raises(InputTypeError, match="f must be a function"):
        SumQuery(3)


def test_sums_are_no_black_boxes():
    for options in ({"sensitivity": "moment"}, {"ball": "pilot"}):
        with pytest.raises(InputError, match="computed exactly"):
            protect("mean", COLUMN, eta=0.2, **options)


def test_failures_are_counted_and_the_first_is_told():
    def fragile(rows):
        if 3 in rows:
            raise ZeroDivisionError("three is in")
        return len(rows)

    with pytest.raises(
        InputError, match=r"failed on \d+ of 64 pilot subsets; the first time: ZeroDivisionError: three"
    ):
        protect(fragile, list(range(20)), eta=0.2, rng=0)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "1 numbers that are not finite"),
        ([1.0, math.inf], "1 numbers that are not finite"),
        ([], "an empty array"),
        ("word", "str, not an array of numbers"),
        ({"a": 1}, "dict, not an array of numbers"),
        ([[1.0], [1.0, 2.0]], "list, not an array of numbers"),
    ],
)
def test_bad_values(value, message):
    with pytest.raises(InputError, match=f"failed on 64 of 64 pilot subsets; the first time: it returned {message}"):
        protect(lambda rows: value, COLUMN, eta=0.2, rng=0)
    with pytest.raises(InputError, match="failed on the drawn records: it returned"):
        protect(lambda rows: value, COLUMN, eta=0.2, adjacent_bound=1.0)


def test_a_shape_that_changes():
    with pytest.raises(InputError, match=r"shape \(\d,\), on other subsets \(\d,\)"):
        protect(lambda rows: rows[rows < 5], np.arange(10), eta=0.2, rng=0)


def test_a_source_in_tests_only():
    with pytest.raises(InputTypeError, match="testing_source must be a SeededSource, in tests only"):
        protect("mean", COLUMN, eta=0.2, testing_source=3)


@pytest.mark.parametrize("split", ["total", "relative"])
def test_one_far_record_in_a_quiet_column_does_not_drown_the_others(split):
    """Scales by the spread of a column that one record dominates would need 14 times the noise of the worst case."""
    rows = np.column_stack([np.random.default_rng(0).standard_normal((400, 5)), np.zeros(400)])
    rows[0, 5] = 20.0
    widest = max(np.linalg.norm(rows - row, axis=1).max() for row in rows) / 200
    plain = protect("mean", rows, eta=0.1, adjacent_bound=widest).certificate.noise_scale
    shaped = protect("mean", rows, eta=0.1, split=split).certificate.noise_scale
    assert np.sqrt(np.mean(shaped**2)) < np.mean(plain)


def test_the_default_split_goes_with_the_square_roots_of_the_spreads():
    rows = np.random.default_rng(1).standard_normal((500, 3)) * [1.0, 4.0, 100.0]
    scale = protect("mean", rows, eta=0.1).certificate.noise_scale
    assert scale / scale[0] == pytest.approx(np.sqrt(rows.std(axis=0) / rows[:, 0].std()), rel=1e-9)
