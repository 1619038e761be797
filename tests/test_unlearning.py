"""Deletion capacity: the theorem by enumeration, the golden numbers, the exact whole number, and the sample."""

import inspect
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import whosin as wi
from whosin.errors import CalibrationError, ImplicationError, InputError, InputTypeError
from whosin.unlearning import Unlearning, deletion_capacity, inclusion_for, remaining, requested, subsample

INF = math.inf
GOLDEN = json.loads((Path(__file__).parent / "data" / "golden.json").read_text(encoding="utf-8"))["thudi"]["deletion"]


def left_out(epsilon, inclusion):
    """L of corollary 1."""
    return 1 / (1 + math.exp(epsilon) * inclusion / (1 - inclusion))


def exact_quotient(epsilon, inclusion, threshold, digits=1500):
    with mpmath.workdps(digits):
        e, p, b = (mpmath.mpf(number) for number in (epsilon, inclusion, threshold))
        return -mpmath.log(b) / mpmath.log1p(mpmath.exp(e) * p / (1 - p))


def exact_capacity(epsilon, inclusion, threshold, digits=1500):
    with mpmath.workdps(digits):
        return int(mpmath.floor(exact_quotient(epsilon, inclusion, threshold, digits)))


# --- the theorem ------------------------------------------------------------------------------------------------------


def data_sets(n):
    return list(itertools.product((0, 1), repeat=n))


def none_used(likelihood, probabilities, deleted):
    """P(no deleted record in D | S) by enumeration of all data sets."""
    total = clean = 0.0
    for drawn in data_sets(len(probabilities)):
        weight = math.prod(p if i else 1 - p for i, p in zip(drawn, probabilities, strict=True)) * likelihood[drawn]
        total += weight
        clean += weight * (not any(drawn[i] for i in deleted))
    return clean / total


def epsilon_of(likelihood):
    """Smallest ε under add/remove for this event."""
    return max(
        abs(math.log(likelihood[d] / likelihood[(*d[:i], 0, *d[i + 1 :])])) for d in likelihood for i in range(len(d))
    )


@pytest.mark.parametrize("seed", range(12))
def test_none_of_m_was_used_with_probability_at_least_l_to_the_m(seed):
    """Random events of ε-DP mechanisms, record-specific draws (L at the largest), every set of deleted records."""
    rng = np.random.default_rng(seed)
    n = 4
    likelihood = {drawn: float(np.exp(rng.normal(scale=rng.uniform(0.1, 1.5)))) for drawn in data_sets(n)}
    probabilities = rng.uniform(0.01, 0.6, size=n).tolist()
    keep = left_out(epsilon_of(likelihood), max(probabilities))
    for m in range(1, n + 1):
        for deleted in itertools.combinations(range(n), m):
            assert none_used(likelihood, probabilities, deleted) >= keep**m * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("inclusion", [0.01, 0.3])
def test_l_to_the_m_is_attained(epsilon, inclusion):
    """Where P(S | D) is proportional to e^{ε|D|}; and the capacity is exactly what such an output allows."""
    n = 5
    likelihood = {drawn: math.exp(epsilon * sum(drawn)) for drawn in data_sets(n)}
    for m in range(n + 1):
        found = none_used(likelihood, [inclusion] * n, range(m))
        assert found == pytest.approx(left_out(epsilon, inclusion) ** m, rel=1e-12)
        assert Unlearning(epsilon, inclusion, 0.5, m).none_used == pytest.approx(found, rel=1e-12)
        if 0 < m < n:
            after = none_used(likelihood, [inclusion] * n, range(m + 1))
            assert deletion_capacity(epsilon, inclusion, (found + after) / 2) == m


def test_the_product_of_posteriors_is_no_identity():
    """Randomised response of a parity, e^ε = 3: each record was left out with probability ½, both with ⅛ or ⅜."""
    likelihood = {drawn: 3.0 if sum(drawn) % 2 else 1.0 for drawn in data_sets(2)}
    assert none_used(likelihood, [0.5, 0.5], [0]) == none_used(likelihood, [0.5, 0.5], [1]) == 0.5
    assert none_used(likelihood, [0.5, 0.5], [0, 1]) == 0.125
    assert left_out(math.log(3), 0.5) ** 2 == pytest.approx(1 / 16)


def test_a_world_with_randomised_response_attains_one_deletion():
    mechanism = wi.mechanisms.RandomizedResponse(lambda records: "x" in records, 1.0)
    game = wi.worlds.independent("xy", 0.05).play(mechanism)
    least = min(1 - game.posterior("x", output) for output in game.outputs)
    assert Unlearning(1.0, 0.05, 0.5, 1).none_used == pytest.approx(least, rel=1e-12)


def test_replace_one_dp_covers_nothing():
    """A(D) = |D| is 0-DP under replacement; where everybody was drawn it says so."""
    game = wi.worlds.independent("ab", 0.1).play(lambda records: {len(records): 1.0})
    assert game.posterior("a", 2) == 1.0
    with pytest.raises(ImplicationError, match=r"A\(D\) = \|D\|"):
        deletion_capacity(wi.PureDP(0.0, "replace"), 0.1, 0.8)


# --- golden numbers ---------------------------------------------------------------------------------------------------

TABLE = {
    1: (820.929, 6065.18),
    10: (82.119, 606.07),
    50: (16.447, 120.82),
    100: (8.238, 60.16),
    200: (4.133, 29.83),
    500: (1.669, 11.64),
    1000: (0.845, 5.57),
    2000: (0.430, 2.54),
    5000: (0.170, 0.712),
}


@pytest.mark.parametrize(("c", "numbers"), TABLE.items())
def test_capacity_of_section_6(c, numbers):
    """B = 0.8, N = 10⁴, ε = 1; the second number is the printed formula's, up to e² = 7.389 times too large."""
    correct, printed = numbers
    assert deletion_capacity(1.0, c / 10_000, 0.8) == math.floor(correct) == math.floor(GOLDEN[str(c)]["m_correct"])
    assert float(exact_quotient(1.0, c / 10_000, 0.8)) == pytest.approx(correct, abs=6e-4)
    with_wrong_sign = float(exact_quotient(-1.0, c / 10_000, 0.8))
    assert with_wrong_sign == pytest.approx(printed, rel=2e-3)
    assert with_wrong_sign / float(exact_quotient(1.0, c / 10_000, 0.8)) < math.exp(2)
    really = Unlearning(1.0, c / 10_000, 0.8, math.floor(with_wrong_sign))
    if really.requests >= 2:
        assert not really.holds
        assert 0.15 < really.none_used < 0.45


def test_the_overstatement_goes_to_e_to_the_2_epsilon():
    for epsilon in (0.5, 1.0, 2.0):
        ratio = exact_quotient(-epsilon, 1e-9, 0.8) / exact_quotient(epsilon, 1e-9, 0.8)
        assert float(ratio) == pytest.approx(math.exp(2 * epsilon), rel=1e-6)


def test_no_deletion_beyond_842_of_10000():
    assert deletion_capacity(1.0, 842.2 / 10_000, 0.8) == 1
    assert deletion_capacity(1.0, 842.3 / 10_000, 0.8) == 0


# --- the exact whole number -------------------------------------------------------------------------------------------


@given(st.floats(0.0, 50.0), st.floats(1e-12, 0.999), st.floats(1e-12, 1.0))
def test_capacity_is_the_largest_that_keeps_the_threshold(epsilon, inclusion, threshold):
    assert deletion_capacity(epsilon, inclusion, threshold) == exact_capacity(epsilon, inclusion, threshold, 120)


@given(st.integers(1, 52), st.integers(1, 20))
def test_without_epsilon_equality_counts(k, m):
    """ε = 0, p = 1 - 2^-k, B = 2^-km: L^m = B exactly, and one rounding above it is one too many."""
    threshold = 2.0 ** (-k * m)
    assert deletion_capacity(0.0, 1 - 2.0**-k, threshold) == m
    assert deletion_capacity(0.0, 1 - 2.0**-k, math.nextafter(threshold, 1.0)) == m - 1
    assert deletion_capacity(0.0, 1 - 2.0**-k, math.nextafter(threshold, 0.0)) == m


@pytest.mark.parametrize(("inclusion", "m"), [(0.25, 2), (0.25, 10), (0.125, 5), (0.375, 7)])
def test_equality_with_other_bases(inclusion, m):
    threshold = (1 - inclusion) ** m
    assert Fraction(threshold) == (1 - Fraction(inclusion)) ** m
    assert deletion_capacity(0.0, inclusion, threshold) == m
    assert deletion_capacity(0.0, inclusion, math.nextafter(threshold, 1.0)) == m - 1


@pytest.mark.parametrize(
    "given_numbers",
    [(1.0, 1e-300, 0.8), (1.0, 5e-324, 5e-324), (0.0, 5e-324, 0.8), (700.0, 5e-324, 0.5), (0.0, 0.5, 5e-324)],
)
def test_huge_capacities_to_the_last_digit(given_numbers):
    assert deletion_capacity(*given_numbers) == exact_capacity(*given_numbers)


@pytest.mark.parametrize(
    "given_numbers",
    [
        (INF, 0.01, 0.8),
        (1e308, 1e-300, 1e-300),
        (1.0, 1.0, 0.5),
        (1.0, 0.01, 1.0),
        (0.0, 1e-17, 1.0),
        (800.0, 0.5, 0.5),
    ],
)
def test_no_capacity(given_numbers):
    assert deletion_capacity(*given_numbers) == 0


def test_another_decimal_context_changes_nothing():
    import decimal

    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP)):
        assert deletion_capacity(1.0, 1e-9, 0.8) == exact_capacity(1.0, 1e-9, 0.8)
        assert Unlearning(1.0, 0.01, 0.8, 5).none_used == pytest.approx(left_out(1.0, 0.01) ** 5, rel=1e-14)


@given(st.floats(0.0, 20.0), st.floats(1e-6, 1.0), st.floats(1e-6, 0.999), st.floats(1.0, 2.0))
def test_capacity_falls_with_everything(epsilon, inclusion, threshold, factor):
    m = deletion_capacity(epsilon, inclusion, threshold)
    assert deletion_capacity(epsilon * factor, inclusion, threshold) <= m
    assert deletion_capacity(epsilon, min(1.0, inclusion * factor), threshold) <= m
    assert deletion_capacity(epsilon, inclusion, min(1.0, threshold * factor)) <= m


@given(st.floats(0.0, 30.0), st.floats(1e-9, 1.0), st.integers(0, 10**6))
def test_the_limit_is_rounded_down(epsilon, inclusion, m):
    found = Unlearning(epsilon, inclusion, 0.5, m).none_used
    if inclusion == 1.0:
        assert found == (1.0 if m == 0 else 0.0)
        return
    with mpmath.workdps(80):
        p = mpmath.mpf(inclusion)
        exact = (1 + mpmath.exp(mpmath.mpf(epsilon)) * p / (1 - p)) ** -m
        assert found <= exact
        assert found >= exact * (1 - mpmath.mpf(2) ** -51) - mpmath.mpf(10) ** -323


# --- inclusion and requests -------------------------------------------------------------------------------------------


@given(st.floats(0.0, 20.0), st.floats(0.01, 0.999), st.integers(1, 10**9))
def test_inclusion_for_is_the_largest(epsilon, threshold, m):
    found = inclusion_for(epsilon, threshold, m)
    assert deletion_capacity(epsilon, found, threshold) >= m
    assert deletion_capacity(epsilon, math.nextafter(found, 1.0), threshold) < m


def test_inclusion_for_agrees_with_the_sampling_rate():
    """One deletion at threshold B is a belief in membership of at most 1 - B."""
    assert inclusion_for(1.0, 0.75, 1) == pytest.approx(wi.calibrate.sampling_rate(1.0, posterior=0.25), rel=1e-12)


def test_inclusion_for_at_the_ends():
    assert inclusion_for(1.0, 0.8, 0) == 1.0
    assert inclusion_for(INF, 1.0, 0) == 1.0
    for impossible in ((1.0, 1.0, 1), (INF, 0.5, 1), (1e6, 0.5, 1), (1000.0, 0.5, 10**200)):
        with pytest.raises(CalibrationError, match="capacity="):
            inclusion_for(*impossible)


def test_remaining():
    assert [remaining(1.0, 0.01, 0.8, done) for done in (0, 1, 7, 8, 9, 10**9)] == [8, 7, 1, 0, 0, 0]


# --- records that were drawn with different probabilities, and tables of requests ------------------------------------


def test_different_probabilities_by_enumeration():
    """The product is a limit for any ε-DP likelihood, and attained where it is proportional to e^(ε|D|)."""
    rng = np.random.default_rng(3)
    probabilities, deleted = [0.3, 0.05, 0.2, 0.01], [0, 1, 3]
    for epsilon in (0.0, 0.3, 1.5):
        limit = Unlearning(epsilon, 0.4, 0.5, [probabilities[i] for i in deleted]).none_used
        worst = {drawn: math.exp(epsilon * sum(drawn)) for drawn in data_sets(4)}
        assert none_used(worst, probabilities, deleted) == pytest.approx(limit, rel=1e-12)
        for _ in range(50):
            steps = rng.uniform(-epsilon, epsilon, 4)
            likelihood = {drawn: math.exp(np.dot(drawn, steps)) for drawn in data_sets(4)}
            assert none_used(likelihood, probabilities, deleted) >= limit * (1 - 1e-12)


@given(
    st.floats(0.0, 5.0),
    st.lists(st.sampled_from([0.0, 1e-9, 0.001, 0.01, 0.05]), max_size=30),
    st.floats(0.05, 1.0),
)
def test_different_probabilities_are_rounded_down(epsilon, drawn, threshold):
    found = Unlearning(epsilon, 0.05, threshold, drawn)
    assert found.requests == len(drawn)
    with mpmath.workdps(60):
        one = [1 / (1 + mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(p) / (1 - mpmath.mpf(p))) for p in drawn]
        exact = mpmath.fprod(one)
        most = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(0.05) / (1 - mpmath.mpf(0.05)))
        assert exact * (1 - mpmath.mpf(10) ** -15) <= found.none_used <= exact
        if found.holds:
            assert exact >= threshold
            assert exact * most**found.remaining >= threshold
            assert exact * most ** (found.remaining + 1) < threshold * (1 + mpmath.mpf(10) ** -14)
        else:
            assert exact < threshold * (1 + mpmath.mpf(10) ** -14)
            assert found.remaining == 0


def test_equal_probabilities_are_the_number():
    for m in (0, 1, 8, 9):
        listed, counted = Unlearning(1.0, 0.01, 0.8, [0.01] * m), Unlearning(1.0, 0.01, 0.8, m)
        assert (listed.none_used, listed.remaining, listed.holds) == (
            counted.none_used,
            counted.remaining,
            counted.holds,
        )
    assert hash(Unlearning(1.0, 0.01, 0.8, [0.01, 0.002])) is not None
    assert "at most 1%" in Unlearning(1.0, 0.01, 0.8, [0.01, 0.002]).explain()
    for wrong in ([0.02], [-0.1], [math.nan]):
        with pytest.raises(InputError, match="requests must be"):
            Unlearning(1.0, 0.01, 0.8, wrong)


def test_requests_of_tables(tmp_path):
    pool = {"who": ["a", "b", "a", "c", "d"], "p": [0.01, 0.02, 0.03, 0.04, 0.05]}
    asked = {"who": ["a", "c", "a", "x"], "p": [0.5, 0.25, 0.125, 1.0]}
    found = requested(asked, "who", pool)
    assert (found.requests, found.rows, found.people, found.unknown, found.inclusion) == (3, 4, 3, 1, None)
    found = requested(asked, "who", pl.DataFrame(pool), inclusion_column="p")
    assert (found.requests, found.inclusion) == ((0.01, 0.03, 0.04), 0.04)
    alone = requested(asked, "who", inclusion_column="p")
    assert (alone.requests, alone.unknown) == ((0.5, 0.25, 1.0), 0)
    (tmp_path / "asked.csv").write_text("who\n013\n07\n012\n")
    (tmp_path / "pool.csv").write_text("who\n7\n07\n8\n")  # as written, though all of them could be numbers
    found = requested(tmp_path / "asked.csv", "who", tmp_path / "pool.csv")
    assert (found.requests, found.unknown) == (1, 2)
    for word, there in (("007", "7"), ("B", "b"), ("stra\u00dfe", "STRASSE"), ("Z\u00fc", "Zu\u0308")):
        with pytest.raises(
            InputError, match=f"requests row 1 must have its key as records has it, got '{word}', there "
        ):
            requested({"who": ["c", word]}, "who", {"who": [there, "c"]})
    (tmp_path / "gap.csv").write_text("who,p\na,1\n,1\n")
    with pytest.raises(InputError, match=r"gap\.csv line 3 column 'who' must say whose the row is"):
        requested(tmp_path / "gap.csv", "who")
    assert str(found) == "3 rows ask for 3 different keys, which have 1 records; 2 of the keys belong to no record"


@pytest.mark.parametrize(
    ("asked", "pool", "message"),
    [
        ({"id": [1]}, None, "requests has no column 'who'; it has id"),
        ({"who": ["a", None]}, None, "requests row 1 column 'who' must say whose the row is, got a missing cell"),
        ({"who": ["a"]}, {"id": ["a"]}, "records has no column 'who'; it has id"),
        ({"who": ["a"]}, {"who": ["a"]}, "inclusion_column must be a column of numbers in records, got 'p'"),
        ({"who": ["a"]}, {"who": ["a"], "p": ["x"]}, "inclusion_column must be a column of numbers"),
        (
            {"who": ["a"]},
            {"who": ["b", "a"], "p": [0.5, 1.5]},
            "records row 1 column 'p' must be a probability, got 1.5",
        ),
        (
            {"who": ["a"]},
            {"who": ["b", "a"], "p": [0.5, None]},
            "records row 1 column 'p' must be a probability, got a missing cell",
        ),
    ],
)
def test_requests_that_cannot_be_counted(asked, pool, message):
    with pytest.raises(InputError, match=message):
        requested(asked, "who", pool, inclusion_column="p")


# --- guarantees and refusals ------------------------------------------------------------------------------------------


def test_guarantees_are_taken():
    assert deletion_capacity(wi.PureDP(1.0), 0.01, 0.8) == 8
    assert deletion_capacity(wi.ApproxDP(1.0, 0.0), 0.01, 0.8) == 8
    assert inclusion_for(wi.PureDP(1.0), 0.8, 8) == inclusion_for(1.0, 0.8, 8)
    assert Unlearning(wi.PureDP(1.0), 0.01, 0.8) == Unlearning(1.0, 0.01, 0.8)
    assert deletion_capacity(wi.mechanisms.Laplace(len, 2.0).guarantee(1.0), 0.01, 0.8) > 8


@pytest.mark.parametrize(
    "guarantee",
    [
        wi.ApproxDP(1.0, 1e-9),
        wi.GaussianDP(1.0),
        wi.PureDP(1.0, "replace"),
        wi.MIP(0.1),
        wi.PMP(1.0),
        wi.MembershipPrivacy(2.0, "uniform"),
    ],
    ids=str,
)
def test_guarantees_from_which_nothing_follows(guarantee):
    for call in (
        lambda: deletion_capacity(guarantee, 0.01, 0.8),
        lambda: inclusion_for(guarantee, 0.8, 3),
        lambda: Unlearning(guarantee, 0.01, 0.8),
    ):
        with pytest.raises(ImplicationError):
            call()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((-1.0, 0.1, 0.8), "epsilon"),
        ((math.nan, 0.1, 0.8), "epsilon"),
        ((1.0, 0.0, 0.8), "inclusion"),
        ((1.0, -0.1, 0.8), "inclusion"),
        ((1.0, 1.1, 0.8), "inclusion"),
        ((1.0, math.nan, 0.8), "inclusion"),
        ((1.0, 0.1, 0.0), "threshold"),
        ((1.0, 0.1, 1.1), "threshold"),
        ((1.0, 0.1, math.nan), "threshold"),
    ],
)
def test_bad_numbers(arguments, named):
    for call in (deletion_capacity, Unlearning):
        with pytest.raises(InputError, match=f"{named} must be"):
            call(*arguments)


@pytest.mark.parametrize("arguments", [("1", 0.1, 0.8), (1.0, None, 0.8), (1.0, 0.1, True), (1.0, [0.1], 0.8)])
def test_wrong_kinds(arguments):
    with pytest.raises(InputTypeError, match="must be a number"):
        deletion_capacity(*arguments)


@pytest.mark.parametrize("wrong", [-1, 1.5, math.nan, INF])
def test_bad_counts(wrong):
    with pytest.raises(InputError, match="requests"):
        remaining(1.0, 0.1, 0.8, wrong)
    with pytest.raises(InputError, match="requests"):
        Unlearning(1.0, 0.1, 0.8, wrong)
    with pytest.raises(InputError, match="capacity"):
        inclusion_for(1.0, 0.8, wrong)


# --- the result -------------------------------------------------------------------------------------------------------


def test_result_in_words():
    covered = Unlearning(1.0, 0.01, 0.8, 5)
    assert str(covered) == "Unlearning(epsilon=1, inclusion=0.01, threshold=0.8): 5 of 8 deletions"
    assert "Deletion requests covered: 8." in covered.explain()
    assert "at least 87.33%; still covered: 3." in covered.explain()
    assert "train anew" in Unlearning(1.0, 0.01, 0.8, 9).explain()
    assert "Not a single deletion" in Unlearning(1.0, 0.5, 0.8).explain()
    assert "asked for" not in Unlearning(1.0, 0.01, 0.8).explain()
    assert any("added or removed" in line for line in covered.assumes)
    assert any("independently" in line for line in covered.assumes)
    assert "<li>" in covered._repr_html_()
    for text in (covered.explain(), covered._repr_html_()):
        assert "safe" not in text


def test_result_as_json():
    shown = json.loads(json.dumps(Unlearning(INF, 0.01, 0.8, 2).to_dict(), allow_nan=False))
    assert shown["epsilon"] == "inf"
    assert (shown["capacity"], shown["remaining"], shown["holds"], shown["none_used"]) == (0, 0, False, 0.0)
    assert shown["assumes"]


def test_result_is_frozen():
    with pytest.raises(AttributeError):
        Unlearning(1.0, 0.01, 0.8).requests = 3


# --- the sample -------------------------------------------------------------------------------------------------------

KINDS = {
    "list": list(range(50)),
    "tuple": tuple(range(50)),
    "array": np.arange(50),
    "matrix": np.arange(100).reshape(50, 2),
    "pandas": pd.DataFrame({"a": range(50), "b": ["x"] * 50}, index=range(100, 150)),
    "pandas series": pd.Series(range(50)),
    "polars": pl.DataFrame({"a": range(50)}),
    "polars series": pl.Series("a", range(50)),
    "pyarrow": pa.table({"a": list(range(50))}),
}


def rows(records):
    if isinstance(records, pd.DataFrame):
        return records["a"].tolist()
    if isinstance(records, pl.DataFrame):
        return records["a"].to_list()
    if isinstance(records, pa.Table):
        return records["a"].to_pylist()
    if isinstance(records, np.ndarray) and records.ndim == 2:
        return (records[:, 0] // 2).tolist()
    return list(records)


@pytest.mark.parametrize("kind", KINDS)
def test_sample_keeps_type_and_order(kind):
    records = KINDS[kind]
    kept = subsample(records, 0.4, rng=1)
    assert type(kept) is type(records)
    expected = rows(subsample(KINDS["list"], 0.4, rng=1))
    assert rows(kept) == expected
    assert 0 < len(expected) < 50
    assert expected == sorted(expected)
    assert rows(subsample(records, 1.0)) == list(range(50))
    assert rows(subsample(records, 0.0)) == []
    assert rows(records) == list(range(50))


def test_a_pandas_sample_keeps_its_index():
    kept = subsample(KINDS["pandas"], 0.4, rng=1)
    assert (kept.index - 100).tolist() == kept["a"].tolist()


@pytest.mark.parametrize("rate", [0.5, 0.03])
def test_every_record_is_kept_with_that_probability(rate):
    rng, runs = np.random.default_rng(5), 1500
    table = np.zeros((runs, 6), dtype=bool)
    for row in table:
        row[subsample(np.arange(6), rate, rng=rng)] = True
    for i, j in itertools.combinations(range(6), 2):
        assert stats.binomtest(int(table[:, i].sum()), runs, rate).pvalue > 1e-4
        assert stats.binomtest(int((table[:, i] & table[:, j]).sum()), runs, rate**2).pvalue > 1e-4


def test_without_a_seed_nobody_repeats_it():
    assert inspect.signature(subsample).parameters["rng"].default is None
    one, two = (subsample(list(range(400)), 0.5) for _ in range(2))
    assert one != two
    assert 100 < len(one) < 300
    assert subsample([], 0.5) == []


@pytest.mark.parametrize("wrong", [{1, 2}, "abc", 3, None, np.array(1.0), pl.LazyFrame({"a": [1]}), {"a": [1]}])
def test_records_of_a_wrong_kind(wrong):
    with pytest.raises(InputTypeError, match="records must"):
        subsample(wrong, 0.5)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_bad_rates(wrong):
    with pytest.raises(InputError, match="rate"):
        subsample([1], wrong)
