"""Exact softmax sums over k-subsets, against brute force, mpmath and the recorded example."""

import itertools
import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from softmax_by_hand import EXAMPLE, example_logits, log_probabilities, random_logits

from whosin.errors import InputError, InputTypeError, MissingExtraError
from whosin.population.exponential import exact as subset_softmax
from whosin.population.exponential.adjacent import adjacent_epsilon, range_bound
from whosin.population.exponential.exact import estimate_seconds, subset_count, subset_laws
from whosin.population.exponential.logits import centre

FIELDS = ("log_inside", "log_outside", "log_total")


def brute_force(logits, k):
    """Logarithms of the three means, from the definition, in 50 digits."""
    logits = np.asarray(logits, dtype=float)
    n_records, m = logits.shape
    with mpmath.workdps(50):
        weights = [[mpmath.exp(-mpmath.mpf(float(value))) for value in row] for row in logits]
        inside = [[mpmath.mpf(0)] * m for _ in range(n_records)]
        outside = [[mpmath.mpf(0)] * m for _ in range(n_records)]
        total = [mpmath.mpf(0)] * m
        for chosen in itertools.combinations(range(n_records), k):
            scores = [mpmath.fprod(weights[record][w] for record in chosen) for w in range(m)]
            normaliser = mpmath.fsum(scores)
            for w in range(m):
                share = scores[w] / normaliser
                total[w] += share
                for record in range(n_records):
                    side = inside if record in chosen else outside
                    side[record][w] += share
        counts = math.comb(n_records - 1, k - 1), math.comb(n_records - 1, k), math.comb(n_records, k)
        return (
            np.array([[float(mpmath.log(value / counts[0])) for value in row] for row in inside]),
            np.array([[float(mpmath.log(value / counts[1])) for value in row] for row in outside]),
            np.array([float(mpmath.log(value / counts[2])) for value in total]),
        )


def assert_same_laws(laws, expected, tolerance):
    for name, value in zip(FIELDS, expected, strict=True):
        np.testing.assert_allclose(getattr(laws, name), value, rtol=1e-15, atol=tolerance, err_msg=name)
        plain = getattr(laws, name.removeprefix("log_"))
        np.testing.assert_allclose(plain, np.exp(value), rtol=10 * tolerance, atol=5e-324)


def logs_of(laws):
    return tuple(getattr(laws, name) for name in FIELDS)


@pytest.mark.parametrize("method", ["auto", "blas", "direct"])
def test_recorded_example(method):
    laws = subset_laws(example_logits(), 6, method=method)
    ratio = laws.log_ratio
    assert np.abs(ratio).max() == pytest.approx(EXAMPLE["eps_pmp"], rel=1e-13)
    assert ratio.max() == pytest.approx(EXAMPLE["max_ln_in_over_out"], rel=1e-13)
    assert -ratio.min() == pytest.approx(EXAMPLE["max_ln_out_over_in"], rel=1e-13)
    record, candidate = EXAMPLE["argmax"]  # the example is symmetric, so two records attain the maximum
    assert abs(ratio[record, candidate]) == pytest.approx(EXAMPLE["eps_pmp"], rel=1e-13)


@pytest.mark.parametrize("method", ["blas", "direct"])
@pytest.mark.parametrize(
    ("n_records", "k", "m"),
    [(2, 1, 2), (3, 1, 2), (3, 2, 4), (5, 2, 3), (7, 1, 3), (7, 6, 3), (8, 4, 2), (9, 4, 5), (10, 3, 3), (9, 7, 2)],
)
def test_definition(n_records, k, m, method):
    logits = random_logits(n_records * 100 + k, n_records, m, scale=2.0)
    assert_same_laws(subset_laws(logits, k, method=method), brute_force(logits, k), 2e-14)


def test_one_record_with_a_loss_of_its_own():
    # Lowy et al., the example that shows both directions to be needed: ln(2/(1+e^-a)) and ln((1+e^a)/2).
    for a in (1.0, 3.0, 10.0):
        logits = np.zeros((8, 2))
        logits[0, 0] = a
        ratio = subset_laws(logits, 4).log_ratio[0]
        assert ratio.max() == pytest.approx(math.log(2.0 / (1.0 + math.exp(-a))), rel=1e-13)
        assert -ratio.min() == pytest.approx(math.log((1.0 + math.exp(a)) / 2.0), rel=1e-13)


@given(
    n_records=st.integers(2, 9),
    m=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-6, 0.1, 1.0, 8.0]),
    data=st.data(),
)
def test_identities(n_records, m, seed, scale, data):
    k = data.draw(st.integers(1, n_records - 1))
    laws = subset_laws(random_logits(seed, n_records, m, scale), k)
    share = k / n_records
    for x in range(n_records):  # the law of total probability, for every record
        mixed = share * laws.inside[x] + (1.0 - share) * laws.outside[x]
        np.testing.assert_allclose(mixed, laws.total, rtol=1e-13)
    for table in (laws.inside, laws.outside, laws.total):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(laws.inside.mean(axis=0), laws.total, rtol=1e-13)
    np.testing.assert_allclose(laws.outside.mean(axis=0), laws.total, rtol=1e-13)


@given(seed=st.integers(0, 2**32 - 1))
def test_constants_change_nothing(seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(8, 3))
    laws = subset_laws(logits, 3)
    shifted = subset_laws(logits + rng.normal(size=(8, 1)) * 10.0, 3)
    assert_same_laws(shifted, logs_of(laws), 1e-13)


def test_one_candidate():
    laws = subset_laws(random_logits(1, 7, 1), 3)
    assert (laws.inside == 1.0).all()
    assert (laws.outside == 1.0).all()
    assert (laws.total == 1.0).all()
    assert (laws.log_ratio == 0.0).all()


def test_candidates_all_alike():
    laws = subset_laws(np.repeat(random_logits(2, 6, 1), 4, axis=1), 2)
    assert laws.method == "closed"
    np.testing.assert_array_equal(laws.inside, 0.25)
    np.testing.assert_array_equal(laws.total, 0.25)


def test_equal_columns_are_merged_and_keep_their_places():
    logits = random_logits(3, 8, 3)[:, [0, 2, 0, 1, 0]]
    logits[:, 2] *= 1.0
    logits[0, 3] = -0.0
    for method in ("blas", "direct"):
        assert_same_laws(subset_laws(logits, 4, method=method), brute_force(logits, 4), 2e-14)


def test_duplicated_records_have_equal_laws():
    logits = random_logits(4, 5, 3)[[0, 1, 1, 2, 3, 4, 1]]
    laws = subset_laws(logits, 3)
    assert_same_laws(laws, brute_force(logits, 3), 2e-14)
    np.testing.assert_allclose(laws.log_inside[1], laws.log_inside[6], atol=1e-14)


def test_many_candidates_and_few_records():
    logits = random_logits(5, 6, 300)
    assert_same_laws(subset_laws(logits, 3, method="blas"), logs_of(subset_laws(logits, 3, method="direct")), 1e-13)


def test_many_records_and_small_subsets():
    logits = random_logits(6, 60, 3)
    laws = subset_laws(logits, 2)
    pairs = list(itertools.combinations(range(60), 2))
    chances = np.exp([log_probabilities(logits, pair) for pair in pairs])
    with_first = np.array([0 in pair for pair in pairs])
    np.testing.assert_allclose(laws.inside[0], chances[with_first].mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(laws.outside[0], chances[~with_first].mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(laws.total, chances.mean(axis=0), rtol=1e-13)


def test_small_memory_cuts_blocks_but_changes_nothing():
    logits = random_logits(7, 19, 4)
    expected = subset_laws(logits, 9)
    fractions = []
    laws = subset_laws(logits, 9, memory=2**16, progress=fractions.append)
    assert len(fractions) == 35  # blocks of 64 rows; without them, one task for each of the 10 sizes
    assert_same_laws(laws, logs_of(expected), 1e-14)


@pytest.mark.parametrize("method", ["blas", "fused", "direct"])
def test_inside_and_outside_far_apart(method):
    # One record alone decides: in and out differ by e^20 and more, either way, and the smaller one keeps its digits.
    if method == "fused":
        pytest.importorskip("numba")
    against = random_logits(8, 8, 3)
    against[0, 0] = 25.0
    in_favour = random_logits(8, 8, 3)
    in_favour[:, 0] += 7.0
    in_favour[0, 0] = -30.0
    for logits, sign in ((against, -1.0), (in_favour, 1.0)):
        laws = subset_laws(logits, 4, method=method)
        assert (sign * laws.log_ratio[0]).max() > 20.0
        assert_same_laws(laws, brute_force(logits, 4), 2e-13)


def test_candidates_far_apart_stay_on_the_fast_route():
    logits = random_logits(9, 8, 3) + np.array([0.0, 150.0, 400.0])  # e^-600 and e^-1600
    laws = subset_laws(logits, 4)
    assert laws.method == "blas"
    assert laws.total[2] == 0.0
    assert_same_laws(laws, brute_force(logits, 4), 1e-12)


@pytest.mark.parametrize("scale", [60.0, 400.0, 5000.0])
def test_wide_logits_fall_back_to_the_log_domain(scale):
    logits = random_logits(10, 8, 3, scale)
    laws = subset_laws(logits, 4)
    expected = brute_force(logits, 4)
    assert_same_laws(laws, expected, 1e-15 * scale * 40)
    if scale > 60.0:
        assert laws.method == "direct"
        assert min(table.min() for table in expected) < -300.0
        with pytest.raises(InputError, match="logits this wide"):
            subset_laws(logits, 4, method="blas")


def test_routes_agree_up_to_the_guard():
    logits = random_logits(11, 10, 4)
    logits *= 590.0 / np.sort(np.ptp(centre(logits)[0], axis=1))[-5:].sum()
    assert_same_laws(subset_laws(logits, 5, method="blas"), brute_force(logits, 5), 1e-12)


def test_fused_kernel_agrees_with_matrix_products():
    pytest.importorskip("numba")
    for n_records, k, m in ((6, 3, 2), (7, 3, 3), (11, 5, 10), (14, 7, 7), (17, 4, 1 + 10)):
        logits = random_logits(n_records, n_records, m, 3.0)
        fused = subset_laws(logits, k, method="fused")
        assert fused.method == "fused"
        assert_same_laws(fused, logs_of(subset_laws(logits, k, method="blas")), 2e-14)


def test_fused_kernel_at_the_guard_and_with_equal_columns():
    pytest.importorskip("numba")
    logits = random_logits(12, 9, 3, 30.0)[:, [0, 1, 1, 2]] + np.array([0.0, 200.0, 200.0, 0.0])
    assert_same_laws(subset_laws(logits, 4, method="fused"), brute_force(logits, 4), 1e-12)


def test_the_choice_of_route(monkeypatch):
    monkeypatch.setattr(subset_softmax, "has_numba", lambda: True)
    assert subset_softmax._route("auto", 2**30, 10, 0.0) == "fused"
    assert subset_softmax._route("auto", 2**20, 10, 0.0) == "blas"
    assert subset_softmax._route("auto", 2**30, 100, 0.0) == "blas"
    assert subset_softmax._route("auto", 2**30, 10, 1000.0) == "direct"
    monkeypatch.setattr(subset_softmax, "has_numba", lambda: False)
    assert subset_softmax._route("auto", 2**30, 10, 0.0) == "blas"
    with pytest.raises(MissingExtraError, match=r"needs numba: pip install .*numba"):
        subset_laws(example_logits(), 6, method="fused")


@pytest.mark.parametrize("method", ["blas", "fused", "direct"])
def test_any_number_of_workers_gives_the_same_bits(method):
    if method == "fused":
        pytest.importorskip("numba")
    logits = random_logits(13, 16 if method == "direct" else 20, 4)
    one = subset_laws(logits, 7, method=method, n_jobs=1, memory=2**16)
    for n_jobs in (2, 3, -1):
        other = subset_laws(logits, 7, method=method, n_jobs=n_jobs, memory=2**16)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_rises_to_one(n_jobs):
    fractions = []
    subset_laws(random_logits(14, 16, 3), 8, n_jobs=n_jobs, progress=fractions.append)
    assert fractions == sorted(set(fractions))
    assert fractions[-1] == 1.0
    assert len(fractions) >= 3


class Interrupted(Exception):
    """Raised by a progress callable, like a Ctrl-C between two tasks."""


def interrupt_after(calls, fractions):
    def progress(fraction):
        fractions.append(fraction)
        if len(fractions) == calls:
            raise Interrupted

    return progress


@pytest.mark.parametrize("method", ["blas", "direct"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_run_resumes(tmp_path, method, n_jobs):
    logits = random_logits(15, 18, 3)
    path = tmp_path / "run.journal"
    settings = {"method": method, "n_jobs": n_jobs, "memory": 2**16}
    expected = subset_laws(logits, 8, **settings)
    reached = 0.0
    for calls in (3, 2):
        fractions = []
        with pytest.raises(Interrupted):
            subset_laws(logits, 8, journal=path, progress=interrupt_after(calls, fractions), **settings)
        assert fractions[0] > reached  # what was reported as done was kept
        reached = fractions[-1]
    fractions = []
    resumed = subset_laws(logits, 8, journal=path, progress=fractions.append, **settings)
    assert reached < fractions[0] <= fractions[-1] == 1.0
    fractions = []
    again = subset_laws(logits, 8, journal=path, progress=fractions.append, **settings)
    assert fractions == [1.0]  # nothing left to do
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(resumed, name), getattr(expected, name))
        np.testing.assert_array_equal(getattr(again, name), getattr(expected, name))
    assert [file.name for file in tmp_path.iterdir()] == ["run.journal"]


def test_a_journal_answers_only_its_own_run(tmp_path):
    """Other logits, another size or another route never get the sums of the first run, also from the same file."""
    path = tmp_path / "run.journal"
    logits = random_logits(16, 8, 3)
    subset_laws(logits, 4, journal=path)
    lines = len(path.read_bytes().split())
    for other, k, method in ((logits, 3, "blas"), (logits + 1e-12, 4, "blas"), (logits, 4, "direct")):
        kept = subset_laws(other, k, method=method, journal=path)
        fresh = subset_laws(other, k, method=method)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(kept, name), getattr(fresh, name))
        assert lines < (lines := len(path.read_bytes().split()))


def test_a_broken_journal_costs_only_what_is_broken(tmp_path):
    path = tmp_path / "run.journal"
    logits = random_logits(17, 8, 3)
    expected = subset_laws(logits, 4, memory=2**16, journal=path)
    content = path.read_bytes()
    middle = content.index(b'"data"') + 20  # inside the numbers
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for broken in (b"", content[: len(content) // 2], flipped):
        path.write_bytes(broken)
        resumed = subset_laws(logits, 4, memory=2**16, journal=path)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(resumed, name), getattr(expected, name))


def test_a_file_of_another_kind_is_no_journal(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("age,height\n41,1.8\n")
    with pytest.raises(InputError, match="no journal"):
        subset_laws(random_logits(17, 8, 3), 4, journal=path)
    assert path.read_text() == "age,height\n41,1.8\n"


def test_a_journal_needs_a_place(tmp_path):
    with pytest.raises(InputError, match="directory that exists"):
        subset_laws(example_logits(), 6, journal=tmp_path / "missing" / "run.journal")
    with pytest.raises(InputError, match="journal"):
        subset_laws(example_logits(), 6, journal=tmp_path)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_are_finite(bad):
    logits = random_logits(18, 5, 2)
    logits[3, 1] = bad
    for function in (subset_laws, adjacent_epsilon):
        with pytest.raises(InputError, match="record 3 and candidate 1"):
            function(logits, 2)
    with pytest.raises(InputError, match="record 3 and candidate 1"):
        range_bound(logits)


@pytest.mark.parametrize("k", [0, 5, 6, -1, 2.5])
def test_k_leaves_both_sides(k):
    for function in (subset_laws, adjacent_epsilon):
        with pytest.raises(InputError, match="k must be a whole number"):
            function(random_logits(19, 5, 2), k)


def test_k_of_all_records_has_no_outside():
    with pytest.raises(InputError, match="no subset without a given record"):
        subset_laws(random_logits(20, 5, 2), 5)


def test_other_bad_input():
    logits = random_logits(21, 5, 2)
    with pytest.raises(InputError, match="shape"):
        subset_laws(logits[0], 2)
    with pytest.raises(InputError, match="shape"):
        subset_laws(np.empty((4, 0)), 2)
    with pytest.raises(InputTypeError, match="logits"):
        subset_laws([["a", "b"], ["c", "d"]], 1)
    with pytest.raises(InputError, match="method"):
        subset_laws(logits, 2, method="guess")
    with pytest.raises(InputError, match="n_jobs"):
        subset_laws(logits, 2, n_jobs=0)
    with pytest.raises(InputTypeError, match="n_jobs"):
        subset_laws(logits, 2, n_jobs="all")
    with pytest.raises(InputError, match="up to 1e\\+100"):
        subset_laws([[1e200, 0.0], [0.0, 1.0]], 1)
    with pytest.raises(InputError, match="memory"):
        subset_laws(logits, 2, memory=10)
    with pytest.raises(InputError, match="2\\^53"):
        subset_laws(random_logits(22, 3000, 2), 1500)


def test_counts_and_times():
    assert subset_count(30, 15) == 155117520
    assert subset_count(4, 6) == 0
    assert estimate_seconds(30, 15, 10) > estimate_seconds(28, 14, 10) > 0.0
    assert estimate_seconds(30, 15, 20) > estimate_seconds(30, 15, 10)


@pytest.mark.parametrize(
    ("method", "scale"),
    [("blas", 1e-6), ("blas", 1.0), ("blas", 40.0), ("direct", 1e-6), ("direct", 1.0), ("direct", 3000.0)],
)
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_no_logarithm_is_off_by_more_than_its_error(method, scale, shift):
    logits = random_logits(25, 9, 4, scale) + shift * np.arange(9.0)[:, None]
    laws = subset_laws(logits, 4, method=method)
    found = max(
        float(np.abs(getattr(laws, name) - value).max())
        for name, value in zip(FIELDS, brute_force(logits, 4), strict=True)
    )
    assert found <= laws.error <= 1e-12 + 1e-11 * scale


KILLED = """
import numpy as np
from whosin.population.exponential.exact import subset_laws
logits = np.random.default_rng(26).normal(size=(22, 4))
report = lambda done: print(done, flush=True)
subset_laws(logits, 11, memory=2**16, n_jobs={n_jobs}, journal={journal!r}, progress=report)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_run_resumes_with_the_same_bits(tmp_path, n_jobs):
    path = tmp_path / "run.journal"
    code = KILLED.format(n_jobs=n_jobs, journal=str(path))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        reported = [float(process.stdout.readline()) for _ in range(5)]
        process.kill()
    fractions = []
    logits = random_logits(26, 22, 4)
    resumed = subset_laws(logits, 11, memory=2**16, journal=path, progress=fractions.append)
    assert reported[-1] < fractions[0] < fractions[-1] == 1.0
    expected = subset_laws(logits, 11, memory=2**16)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(resumed, name), getattr(expected, name))
