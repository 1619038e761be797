"""Groups: counted by hand, covered together, and found by a scan that does not cheat."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm

from whosin.auditing import audit
from whosin.errors import InputError, InputTypeError
from whosin.numerics.differences import gain_lower


def exposed(rng, n, share=0.3, shift=1.5):
    """Members of group "rare" leak by a shift, others do not."""
    labels = [np.where(rng.random(n) < share, "rare", "common") for _ in range(2)]
    x, y = rng.normal(size=n) + shift * (labels[0] == "rare"), rng.normal(size=n)
    return x, y, labels


def test_counts_by_hand():
    rng = np.random.default_rng(0)
    x, y, labels = exposed(rng, 900)
    a = audit(x, y, groups=labels, rng=0)
    row = a.groups["rare"]
    held = ~a._evidence.fit_members, ~a._evidence.fit_non_members
    inside, outside = x[held[0] & (labels[0] == "rare")], y[held[1] & (labels[1] == "rare")]
    found, wrong = a.attack.accuses(inside).sum(), a.attack.accuses(outside).sum()
    assert row.advantage.estimate == pytest.approx(found / len(inside) - wrong / len(outside))
    level = 0.05 / 2 / 4
    lower = gain_lower(int(found), len(inside), int(wrong), len(outside), level)
    upper = -gain_lower(int(wrong), len(outside), int(found), len(inside), level)
    assert (row.advantage.lower, row.advantage.upper) == pytest.approx((lower, upper))
    assert row.members == np.sum(labels[0] == "rare")
    assert row.risk == pytest.approx(a.individual.risk[:900][labels[0] == "rare"].mean())
    assert row.stands_out
    assert not a.groups["common"].stands_out
    assert row.difference.estimate == pytest.approx(row.advantage.estimate - a.groups["common"].advantage.estimate)


def test_coverage_together():
    """Both groups and their difference at once, at a level of 20 %; the truth follows from the chosen threshold."""
    rng = np.random.default_rng(1)
    misses = runs = 0
    for run in range(36):
        x, y, labels = exposed(rng, 300)
        a = audit(x, y, groups=labels, rng=run, confidence_level=0.8)
        if a.attack.candidate.rule != "high":
            continue
        runs += 1
        t = a.attack.threshold
        rare = norm.sf(t - 1.5) - norm.sf(t)
        for name, truth, gap in (("rare", rare, rare), ("common", 0.0, -rare)):
            row = a.groups[name]
            if not (
                row.advantage.lower <= truth <= row.advantage.upper
                and row.difference.lower <= gap <= row.difference.upper
            ):
                misses += 1
                break
    assert runs > 16
    assert binomtest(misses, runs, 0.2, alternative="greater").pvalue > 1e-4


def test_scan_finds_the_group():
    rng = np.random.default_rng(2)
    n = 4000
    columns = {
        name: [rng.choice(list(values), n) for _ in range(2)] for name, values in (("sex", "fm"), ("age", "abc"))
    }
    leak = (columns["sex"][0] == "f") & (columns["age"][0] == "b")
    x, y = rng.normal(size=n) + 1.5 * leak, rng.normal(size=n)
    a = audit(x, y, rng=0)
    assert len(a.groups) == 0
    found = a.groups.scan(columns, top=3)
    assert len(found) == 3
    assert found[0].name == "sex=f, age=b"
    assert found[0].stands_out
    alone = a.groups.scan(columns, most_columns=1, top=2)
    assert "," not in alone[0].name
    assert len(a.groups.scan(columns, min_size=n)) == 0


def test_scan_chooses_without_the_data_it_reports():
    """Held-out answers dealt out anew change the limits, never the groups that were chosen."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(0.3, 1, 600), rng.normal(0, 1, 600)
    columns = {str(i): [rng.integers(0, 4, 600) for _ in range(2)] for i in range(4)}
    first = audit(x, y, rng=7)
    held = np.flatnonzero(~first._evidence.fit_members)
    dealt = x.copy()
    dealt[held] = rng.permutation(x[held])
    second = audit(dealt, y, rng=7)
    assert np.array_equal(first._evidence.fit_members, second._evidence.fit_members)
    one, two = (a.groups.scan(columns, min_size=5) for a in (first, second))
    assert [row.name for row in one] == [row.name for row in two]
    assert [row.advantage for row in one] != [row.advantage for row in two]


def test_scan_does_not_cry_wolf():
    """Nothing leaks and nothing differs: a group stands out in at most 2.5 % of audits, however many were searched."""
    rng = np.random.default_rng(3)
    alarms = 0
    for run in range(20):
        columns = {str(i): [rng.integers(0, 5, 400) for _ in range(2)] for i in range(4)}
        table = audit(rng.normal(size=400), rng.normal(size=400), rng=run).groups.scan(columns, min_size=5)
        alarms += any(row.stands_out for row in table)
    assert binomtest(alarms, 20, 0.025, alternative="greater").pvalue > 1e-4


def test_named_columns_and_a_group_on_one_side():
    rng = np.random.default_rng(4)
    groups = {"side": (["in"] * 200, ["out"] * 200), "half": ([0, 1] * 100, [0, 1] * 100)}
    a = audit(rng.normal(size=200), rng.normal(size=200), groups=groups, rng=0)
    assert [row.name for row in a.groups] == ["side=in", "side=out", "half=0", "half=1"]
    assert np.isnan(a.groups["side=in"].advantage.estimate)
    assert a.groups["side=in"].to_dict()["advantage"]["estimate"] is None
    assert a.groups["side=out"].to_dict()["risk"] is None
    assert a.groups["side=in"].advantage.lower < -0.5
    assert str(a.groups)
    assert len(a.groups.plot().get_yticks()) == 4
    with pytest.raises(KeyError):
        a.groups["nobody"]


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        ((["a"] * 3, ["a"] * 50), InputError, "one label per record, 50 and 50, got 3 and 50"),
        (5, InputTypeError, "groups must be a pair"),
        ({"sex": ["a"] * 50}, InputTypeError, "groups must be a pair"),
    ],
)
def test_bad_groups(groups, error, words):
    with pytest.raises(error, match=words):
        audit(np.linspace(0, 1, 50), np.linspace(0, 1, 50), groups=groups)


def test_too_many_labels():
    values = np.linspace(0, 1, 600)
    with pytest.raises(InputError, match="at most 1000 different labels, got 1200"):
        audit(values, values, groups=(np.arange(600), np.arange(600, 1200)))


def test_bad_scan():
    table = audit(np.linspace(0, 1, 50), np.linspace(0, 1, 50), rng=0).groups
    pair = (["a"] * 50, ["b"] * 50)
    for options, word in (({"most_columns": 3}, "most_columns"), ({"min_size": 0}, "min_size"), ({"top": 0}, "top")):
        with pytest.raises(InputError, match=word):
            table.scan({"x": pair}, **options)


def test_missing_labels_are_one_group():
    """None, NaN and pandas' NA mean the same, on both sides."""
    values = np.linspace(0, 1, 60)
    for gaps in ((None, np.nan), (np.nan, pd.NA), (pd.NaT, None)):
        groups = tuple(np.array(["a", gap, "b"] * 20, dtype=object) for gap in gaps)
        assert [row.name for row in audit(values, values, groups=groups, rng=0).groups] == ["a", "b", "missing"]


def test_scan_leaves_out_what_is_named():
    """The limits of a scan are corrected for the groups that it reports, and named ones take no place among them."""
    rng = np.random.default_rng(6)
    x, y, labels = exposed(rng, 900)
    columns = {"kind": labels, "coin": [rng.integers(0, 2, 900) for _ in range(2)]}
    named = audit(x, y, groups={"kind": labels}, rng=0).groups.scan(columns, top=2)
    plain = audit(x, y, rng=0).groups.scan(columns, top=2)
    assert "kind=rare" in [row.name for row in plain]
    assert len(named) == 2
    assert not {"kind=rare", "kind=common"} & {row.name for row in named}


def test_scan_of_many_values_is_quick():
    """Fifty values a column, twelve columns, 66 pairs: numbers are joined, not texts."""
    rng = np.random.default_rng(7)
    n = 10_000
    values = np.array([f"some long value {i}" for i in range(50)])
    columns = {f"column {i}": tuple(values[rng.integers(0, 50, n)] for _ in range(2)) for i in range(12)}
    table = audit(rng.normal(size=n), rng.normal(size=n), rng=0).groups
    start = time.process_time()
    assert len(table.scan(columns, min_size=2)) == 5
    assert time.process_time() - start < 2.0, "a third of a second on an idle core"
