"""Auditing a released table: what is found, what is refused, and what is said."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from null_audits import judge_alarms

import whosin as wi
from whosin.auditing.measuring import learned
from whosin.auditing.releases.queries import ask
from whosin.auditing.releases.queries.arrays import QUERIES as ARRAY_QUERIES
from whosin.auditing.releases.queries.arrays import ArrayRelease
from whosin.auditing.releases.queries.tables import QUERIES as TABLE_QUERIES
from whosin.auditing.releases.queries.tables import TableRelease
from whosin.auditing.releases.release_size import sizes_up_to
from whosin.auditing.releases.tables_to_answers import _ranges, answer_queries
from whosin.errors import AssumptionWarning, InputError, InputTypeError, WhosinError


def people(rows, rng):
    """A frame of mixed types: two numbers, a date, two categories, some cells missing."""
    age = rng.integers(18, 90, rows).astype(float)
    age[rng.random(rows) < 0.05] = np.nan
    job = rng.choice(["cook", "clerk", "smith", "nurse", "diver"], rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    return pd.DataFrame(
        {
            "age": age,
            "income": np.round(rng.lognormal(10, 1, rows), -2),
            "born": pd.Timestamp("1960-01-01") + pd.to_timedelta(rng.integers(0, 15000, rows), unit="D"),
            "job": np.where(rng.random(rows) < 0.03, None, job),
            "sex": rng.choice(["f", "m"], rows),
        }
    )


def copied(train, rng, share, cells=0.1):
    """A release that repeats a share of the training rows with some cells redrawn; the rest is fresh."""
    taken = train.sample(int(share * len(train)), random_state=3).reset_index(drop=True)
    for name in taken.columns:
        redrawn = rng.random(len(taken)) < cells
        values = train[name].sample(len(taken), replace=True, random_state=5).to_numpy()
        taken[name] = np.where(redrawn, values, taken[name].to_numpy())
    taken["born"] = pd.to_datetime(taken["born"])
    return pd.concat([taken, people(len(train) - len(taken), rng)], ignore_index=True)


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(11)
    train, holdout = people(1500, rng), people(1500, rng)
    return train, holdout, copied(train, rng, 0.5), people(1500, rng)


@pytest.fixture(scope="module")
def leak(tables):
    return wi.audit_synthetic(*tables[:3], rng=1)


def test_finds_copied_people_and_names_them(tables, leak):
    train, _, leaky, _ = tables
    found = leak
    assert 0.35 < found.advantage.lower <= found.advantage.estimate <= 0.55
    taken = set(train.sample(750, random_state=3).index)
    named = [row["index"] for row in found.individual.highest(100, "member")]
    assert np.mean([row in taken for row in named]) > 0.9
    best = found.closest[named[0]]
    assert (train.loc[named[0]].astype(str) == leaky.loc[best].astype(str)).sum() >= 4


def test_does_not_cry_wolf_on_fresh_rows(tables):
    train, holdout, _, fresh = tables
    lower = [wi.audit_synthetic(train, holdout, fresh, rng=seed).advantage.lower for seed in range(2)]
    assert max(lower) < 0.02


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
def test_false_alarms_over_fresh_worlds():
    """Releases that are independent of the training, looked at with two levels; tests/long has more."""
    rng = np.random.default_rng(5)

    def world():
        parts = [rng.integers(0, 6, (150, 4)).astype(str) for _ in range(3)]
        return wi.audit_synthetic(*(pd.DataFrame(part, columns=list("abcd")) for part in parts), rng=rng)

    judge_alarms(world() for _ in range(8))


def test_frames_of_any_library_agree(tables):
    train, holdout, leaky, _ = (part.head(200) for part in tables)
    as_pandas = wi.audit_synthetic(train, holdout, leaky, rng=2)
    as_polars = wi.audit_synthetic(*(pl.from_pandas(part) for part in (train, holdout, leaky)), rng=2)
    assert as_pandas.advantage == as_polars.advantage
    assert as_pandas.fingerprints == as_polars.fingerprints


def test_order_of_columns_and_number_of_jobs_do_not_matter(tables):
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    one = wi.audit_synthetic(train, holdout, leaky, rng=2, n_jobs=1)
    two = wi.audit_synthetic(train, holdout[["sex", "job", "born", "income", "age"]], leaky, rng=2, n_jobs=2)
    assert one.advantage == two.advantage
    assert np.array_equal(one._material.answers, two._material.answers)


def test_queries_by_hand():
    """Three rows, worked out on paper: equal cells, rarity, distance, copies."""
    cells = np.array([[0, 0], [1, 1], [2, 0]], dtype=np.int32)
    release = TableRelease(
        cells,
        np.array([[0, 0], [2, 1], [0, 0]], dtype=np.int32),
        [np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.25])],
        [np.array([0.0, 0.5, 3.0]), None],
        [np.array([-0.5, 0.25, 0.75]), None],
    )
    names = (
        *("equal_cells", "rarity", "rarity_share", "nearest", "copies", "soft_rarity", "soft_rarity_share"),
        "repeated_values",
    )
    found = ask(release, TABLE_QUERIES, names)
    assert found.values[:, 0].tolist() == [2.0, 1.0, 1.0]
    ln = np.log
    assert np.allclose(found.values[:, 1], [ln(2) + ln(4 / 3), ln(4), ln(4)])
    assert np.allclose(found.values[:, 2], [1.0, 0.5, ln(4) / (ln(4) + ln(4 / 3))])
    assert np.allclose(found.values[:, 3], [0.0, -1.0, -1.0])
    assert found.values[:, 4].tolist() == [2.0, 0.0, 0.0]
    soft = [ln(2) + ln(4 / 3), ln(4) - ln(0.25 + 0.5), ln(4)]
    assert np.allclose(found.values[:, 5], soft)
    assert np.allclose(found.values[:, 6], soft / np.array([ln(2) + ln(4 / 3), ln(4) + ln(4), ln(4) + ln(4 / 3)]))
    # in both columns one value has two rows and one has one: 2·(1+10)/(3·10), (1+10)/(2·(1+10)), and 0 of no row
    often, once, never = (ln((1 + ratio) / 2) for ratio in (22 / 30, 11 / 22, 0))
    assert np.allclose(found.values[:, 7], [2 * often, never + once, once + often])


def test_array_queries_by_hand():
    release = ArrayRelease(
        np.array([[0.0], [10.0], [4.0]]), np.array([[1.0], [3.0], [4.0]]), reference=np.array([[0.5]])
    )
    found = ask(release, ARRAY_QUERIES, ("nearest", "nearest_ratio", "ball", "ball_by_distance", "density_ratio"))
    assert np.allclose(found.values[:, 0], [-1.0, -6.0, 0.0])
    assert np.allclose(found.values[:, 1], [1 - 1 / 3, 1 - 6 / 7, 1.0])
    assert release.radius == 0.5
    assert np.allclose(found.values[:, 2], [0.0, 0.0, 1 / 3])
    assert np.allclose(found.values[:2, 3], [0.0, 0.0])
    assert found.values[2, 3] > 5.0
    assert np.allclose(found.values[:2, 4], [np.log(0.5 / 1.0), np.log(9.5 / 6.0)], atol=1e-6)


def test_arrays_and_images():
    rng = np.random.default_rng(3)
    train, holdout = rng.standard_normal((400, 4, 4)), rng.standard_normal((400, 4, 4))
    leaky = np.concatenate([train[:200] + 0.05 * rng.standard_normal((200, 4, 4)), rng.standard_normal((200, 4, 4))])
    found = wi.audit_synthetic(train, holdout, leaky, rng=0)
    assert found.advantage.lower > 0.3
    assert found.closest[:200].tolist() == list(range(200))
    assert "nearest" in found.release_size.query


@pytest.mark.parametrize(
    "query", ["nearest", ["rarity", "equal_cells"], lambda records, released: records["age"].isna()]
)
def test_one_several_and_own_queries(tables, query):
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    found = wi.audit_synthetic(train, holdout, leaky, query=query, rng=0)
    json.dumps(found.to_dict(), allow_nan=False)
    assert (found.release_size is None) == callable(query)


def test_density_ratio_takes_a_reference(tables):
    train, holdout, leaky, fresh = tables
    with pytest.raises(InputError, match="reference is needed"):
        wi.audit_synthetic(train, holdout, leaky, query="density_ratio")
    assert (
        wi.audit_synthetic(train, holdout, leaky, query="density_ratio", reference=fresh, rng=0).advantage.lower > 0.2
    )


def test_release_size_grows_and_answers(tables, leak):
    leaky, curve = tables[2], leak.release_size
    assert curve.sizes[-1] == len(leaky)
    assert curve.advantages[-1].lower > 0.3
    assert curve.advantages[0].estimate < 0.15
    allowed = curve.largest(0.25)
    assert allowed is not None
    assert allowed < len(leaky)
    assert curve.largest(0.001) is None
    assert curve.largest(1.0) == len(leaky)
    for size, found in zip(curve.sizes, curve.advantages, strict=True):
        assert size > allowed or found.upper <= 0.25


def test_release_size_is_the_audit_of_the_first_rows(tables):
    """The answers at the last size are those of the whole release, and growing prefixes never answer less."""
    train, holdout, leaky, _ = (part.head(200) for part in tables)
    material = answer_queries(
        train, holdout, leaky, query="rarity", reference=None, columns=None, groups=None, n_jobs=1,
        rng=np.random.default_rng(0), progress=lambda share: None,
    )  # fmt: skip
    assert np.array_equal(material.by_size["rarity"][:, -1], material.answers[:, 0])
    for answers in material.by_size.values():
        assert (np.diff(answers, axis=1) >= 0).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 99, 100, 12345])
def test_sizes(rows):
    sizes = sizes_up_to(rows)
    assert sizes[-1] == rows
    assert list(sizes) == sorted(set(sizes))
    assert sizes[0] >= min(rows, 2)


def test_groups_named_and_found(tables):
    train, holdout, leaky, _ = tables
    leaky = pd.concat([leaky[leaky["sex"] == "f"], people(700, np.random.default_rng(2))], ignore_index=True)
    found = wi.audit_synthetic(train, holdout, leaky, groups=["sex", "age"], rng=1)
    women, men = (next(row for row in found.groups if row.name == f"sex={sex}") for sex in "fm")
    assert women.difference.lower > 0.1
    assert men.difference.upper < 0
    assert sum(row.name.startswith("age=") for row in found.groups) == 5
    assert "More exposed than the rest, beyond chance: sex=f" in found.explain()
    assert "sex=f" not in [row.name for row in found.exposed_groups], "it was named already"
    unnamed = wi.audit_synthetic(train, holdout, leaky, rng=1)
    assert any("sex=f" in row.name and row.stands_out for row in unnamed.exposed_groups)
    assert "sex=f" in unnamed.explain()


def test_groups_of_a_column_that_is_not_compared(tables):
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    compared = ["age", "job"]
    found = wi.audit_synthetic(train, holdout, leaky, query="nearest", columns=compared, groups=["sex", "sex"], rng=0)
    assert [row.name for row in found.groups] == ["sex=f", "sex=m"]
    with pytest.raises(InputError, match="no column 'height'"):
        wi.audit_synthetic(train, holdout, leaky, groups="height")


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([1234567.0, 1234568.0, 1234569.0], 4),
        ([0.0, -0.0, 0.5], 3),
        ([1e6, 1e6 + 1 / 32, 1e300], 4),
    ],
)
def test_few_numbers_that_look_alike_make_different_groups(values, groups):
    side = np.append(values, np.nan)
    inside, outside = _ranges((side, side[1:2]), "number")
    assert [float(label) for label in inside[:-1]] == pytest.approx(values, rel=1e-7)
    assert len(set(inside)) == groups
    assert inside[-1] == "missing"
    assert outside.tolist() == [inside[1]]


@pytest.mark.parametrize("values", [1.6e9 + np.arange(40.0), 1e6 + np.arange(24.0) / 32, np.arange(100) % 30.0])
def test_quarters_hold_their_numbers(values):
    inside, outside = _ranges((values, values[::2]), "number")
    assert len(set(inside)) == 4
    for value, label in zip([*values, *values[::2]], [*inside, *outside], strict=True):
        low, high = map(float, label.split(" to "))
        assert low - 0.06 <= value <= high + 0.06


def test_dates_make_groups_that_read_as_dates(tables):
    train, holdout, leaky, _ = (part.head(200) for part in tables)
    found = wi.audit_synthetic(train, holdout, leaky, query="nearest", groups="born", rng=0)
    assert len(found.groups) == 4
    first = found.groups[0].name.removeprefix("born=").split(" to ")
    assert [str(np.datetime64(text, "D")) for text in first] == first
    hours = _ranges((np.arange(3) * 3600.0, np.zeros(1)), "date")
    assert hours[0].tolist() == ["1970-01-01T00:00:00", "1970-01-01T01:00:00", "1970-01-01T02:00:00"]


def test_one_release_refutes_a_promise_only_where_chance_decided(tables):
    """However much leaks, without chance it is no violation (a constant 0-DP training may look so)."""
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    found = wi.audit_synthetic(train, holdout, train, query="nearest", rng=0)
    assert found.advantage.lower > 0.9
    assert found.compare(wi.PureDP(0.1)).verdict == "exceeds the promise on this model"
    assert found.compare(wi.PureDP(0.1), assignment="random").verdict == "violated"
    with pytest.raises(InputError, match="comes from one training"):
        found.compare(wi.PureDP(0.1), assignment="independent trainings")
    with pytest.raises(InputError, match="trainings must be 1"):
        found.compare(wi.PureDP(0.1), assignment="random", trainings=600)
    with pytest.raises(InputError, match="comes from one training"):
        wi.audit_synthetic(train, holdout, leaky, assignment="independent trainings")
    assert any("this release and its training rows" in line for line in found.assumes)


def test_sides_of_very_different_sizes_learn(monkeypatch):
    """More outsiders than are learned from: the few members all take part."""
    monkeypatch.setattr(learned, "MOST", 60)
    rng = np.random.default_rng(0)
    a = wi.audit(rng.normal(2, 1, (70, 2)), rng.normal(0, 1, (9000, 2)), rng=0)
    assert a.advantage.lower > 0.2
    labels = np.arange(1000) < 35
    chosen = learned._some(labels, rng)
    assert len(chosen) == 60
    assert labels[chosen].sum() == 30
    few = np.arange(1000) < 10
    assert few[learned._some(few, rng)].sum() == 10


def test_a_holdout_of_another_population_is_called_out(tables):
    train, holdout, _, fresh = tables
    other = holdout.assign(income=holdout["income"] * 3)
    with pytest.warns(AssumptionWarning, match=r"differ even without the release \(columns?: income"):
        found = wi.audit_synthetic(train, other, fresh, query="nearest", rng=0)
    assert found.records_alone.differs
    assert found.records_alone.columns == ("income",)
    assert not found.dependence.found
    assert any("part or all of the measured gap" in line for line in found.assumes)
    assert "part or all of the measured gap" in found.explain()


@pytest.mark.parametrize("plain", [False, True])
def test_a_reference_that_holds_one_side_is_called_out(tables, plain):
    """With held-out rows in the reference these are at distance 0 from it, and a fresh release seems to leak."""
    train, holdout, _, fresh = (part.head(200)[["age", "income"]].fillna(0.0) for part in tables)
    if plain:
        train, holdout, fresh = (part.to_numpy() for part in (train, holdout, fresh))
    with pytest.warns(AssumptionWarning, match="held-out rows appear in the reference"):
        found = wi.audit_synthetic(train, holdout, fresh, query="density_ratio", reference=holdout[:190], rng=0)
    assert found.advantage.lower > 0.5
    assert any("appear in the reference" in line for line in found.assumes)


def test_labels_that_the_sides_do_not_share_allow_no_verdict(tables):
    """As in the files of Adult, where the held-out rows end in a point; few rows, or many labels, may share none."""
    train, holdout, _, fresh = tables
    other = holdout.assign(job=holdout["job"].astype(str) + ".")
    with pytest.warns(AssumptionWarning, match="share no label of 'job'"):
        found = wi.audit_synthetic(train, other, fresh, query="nearest", rng=0)
    assert found.verdict.state == "no verdict"
    assert "write it in one way in both, or leave it out" in found.verdict.sentence
    without = wi.audit_synthetic(train, other, fresh, query="nearest", ignore=["job"], rng=0)
    assert without.verdict.state != "no verdict"
    gone = holdout.assign(job=None)  # "?" in one file, nothing in the other
    with pytest.warns(AssumptionWarning, match="share no label of 'job'"):
        found = wi.audit_synthetic(train.assign(job="?"), gone, fresh, query="nearest", rng=0)
    assert found.verdict.state == "no verdict"
    few = [pd.DataFrame({"a": [f"{side}{i}" for i in range(9)], "x": range(9)}) for side in "pqr"]
    assert "share no label" not in str(wi.audit_synthetic(*few, keep=["a", "x"], query="nearest", rng=0).problem)


@pytest.mark.parametrize(("unit", "times", "warned"), [("lb", 2.2, True), ("kg", 1.0, False), ("", 1.0, False)])
def test_another_unit_in_the_file_of_the_release_is_warned_of(tmp_path, unit, times, warned):
    """A full copy in pounds beside kilograms equals nobody, and its numbers are not far from the others."""
    rng = np.random.default_rng(0)
    own, others = rng.integers(1, 2000, size=(2, 60))
    for name, cells, mark in (("a", own, "kg"), ("b", others, "kg"), ("c", own * times, unit)):
        (tmp_path / f"{name}.csv").write_text("w,s\n" + "".join(f"{cell:.1f} {mark},x\n" for cell in cells))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        wi.audit_synthetic(*(tmp_path / f"{name}.csv" for name in "abc"), rng=0)
    said = "'kg' is left out in 'w' in the training rows, 'lb' is left out in 'w' in the release"
    assert any(said in str(one.message) for one in heard) == warned


@pytest.mark.parametrize(("times", "said"), [(12.0, "larger"), (1 / 12.0, "smaller")])
def test_numbers_in_another_unit_are_warned_of(times, said):
    """Months for years. A poor copy of a column that is mostly 0 is none."""
    rng = np.random.default_rng(0)
    train, holdout, fresh = (
        pd.DataFrame({"age": rng.integers(20, 80, 60), "gain": np.where(rng.random(60) < 0.9, 0.0, rng.random(60))})
        for _ in range(3)
    )
    with pytest.warns(AssumptionWarning, match=f"Most numbers of 'age' in the release are {said}") as caught:
        found = wi.audit_synthetic(train, holdout, train.assign(age=train["age"] * times), query="nearest", rng=0)
    assert len(caught) == 1
    assert any("in one unit" in line for line in found.assumes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumptionWarning)
        wi.audit_synthetic(train, holdout, fresh.assign(gain=fresh["gain"] + 0.01), query="nearest", rng=0)


def test_labels_of_a_column_that_the_release_writes_otherwise_are_warned_of(tables):
    """Copies go unseen then; texts that hardly repeat, such as names, are new in any good release."""
    train, holdout, leaky, _ = tables
    other = leaky.assign(job=leaky["job"].astype(str).str.upper())
    with pytest.warns(AssumptionWarning, match="release has no label of 'job' that the training rows have"):
        found = wi.audit_synthetic(train, holdout, other, rng=0)
    assert any("copies go unseen" in line for line in found.assumes)
    named = [
        part.assign(name=[f"{side}{i}" for i in range(len(part))]) for part, side in zip(tables, "pqrs", strict=True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssumptionWarning)
        wi.audit_synthetic(named[0], named[1], named[3], keep=["name"], rng=0)


def test_a_reference_is_used(tables):
    train, holdout, _, fresh = (part.head(200) for part in tables)
    found = wi.audit_synthetic(train, holdout, fresh, reference=people(200, np.random.default_rng(8)), rng=0)
    assert "density_ratio" in found.queries


def test_shared_rows_are_counted(tables):
    train, holdout, _, fresh = tables
    mixed = pd.concat([train.head(60), holdout.iloc[60:]], ignore_index=True)
    with pytest.warns(AssumptionWarning, match="Rows on one side are repeated on the other"):
        found = wi.audit_synthetic(train, mixed, fresh, query="nearest", rng=0)
    assert found.shared_rows == 60
    assert found.dependence.straddling
    assert any("60 of the 1500 training rows equal" in line for line in found.assumes)


def test_copies_are_counted(tables):
    train, holdout, _, _ = (part.head(200) for part in tables)
    release = pd.concat([train.head(50), holdout.head(20)])
    found = wi.audit_synthetic(train, holdout, release, query="nearest", rng=0)
    assert found.copies == (50, 20)
    cells = [part.astype(str).to_numpy() for part in (train, holdout, release)]
    near = [int(((side[:, None] == cells[2][None]).sum(axis=2).max(axis=1) >= 4).sum()) for side in cells[:2]]
    assert found.near_copies == tuple(near)
    assert "50 of 200 members and 20 of 200 outsiders appear in the release word for word" in found.explain()
    fewer = wi.audit_synthetic(train, holdout.head(120), release, query="nearest", rng=0)
    assert fewer.copies_by_chance == fewer.to_dict()["copies"]["members_by_chance"] == pytest.approx(20 * 200 / 120)
    assert "chance alone would give about 33.3 of the members" in fewer.explain()


def test_to_dict_is_json_and_has_the_contract(tables):
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    payload = wi.audit_synthetic(train, holdout, leaky, rng=0).to_dict()
    json.dumps(payload, allow_nan=False)
    assert set(payload["advantage"]) >= {"estimate", "lower", "upper", "confidence_level"}
    for key in ("prior", "members", "non_members", "query", "kind", "roc", "individual", "assumes", "release_size"):
        assert key in payload
    assert set(payload["roc"]) == {"fpr", "tpr"}
    assert "released_row" in payload["individual"]["highest"][0]


def test_the_most_exposed_are_named_by_their_place_in_the_file(tmp_path):
    """Not by the number of a row plus two: titles, blank lines and files without names move the lines."""
    rng = np.random.default_rng(3)
    rows = [[f"{value:.3f}" for value in rng.normal(size=3)] for _ in range(120)]
    files = {
        "train": (rows[:40], "a,b,c\n\n"),
        "holdout": (rows[40:80], "a,b,c\n"),
        "synthetic": (rows[:20], "t\n\na,b,c\n"),
    }
    for name, (part, head) in files.items():
        (tmp_path / f"{name}.csv").write_text(head + "".join(",".join(row) + "\n" for row in part))
    found = wi.audit_synthetic(*(tmp_path / f"{name}.csv" for name in files), rng=0)
    for row in found.to_dict()["individual"]["highest"]:
        assert row["place"] == f"line {row['index'] + 3}"
        assert row["released_place"] == f"line {row['released_row'] + 4}"
    frames = (wi.tables.read_table(tmp_path / f"{name}.csv").column("a")[:, None] for name in files)
    assert wi.audit_synthetic(*frames, rng=0).to_dict()["individual"]["highest"][0]["place"].startswith("row ")


def test_plots(tables):
    train, holdout, leaky, _ = (part.head(300) for part in tables)
    found = wi.audit_synthetic(train, holdout, leaky, query="nearest", groups="sex", rng=0)
    for drawn in (found, found.release_size, found.individual, found.groups):
        assert drawn.plot() is not None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"holdout": lambda f: f.drop(columns="age")}, "age"),
        ({"synthetic": lambda f: f.assign(extra=1)}, "extra"),
        ({"synthetic": lambda f: f.assign(age=f["age"].astype(str))}, "age"),
        ({"train": lambda f: f.head(0)}, "at least one row"),
        ({"synthetic": lambda f: f.assign(income=np.inf)}, "income"),
    ],
)
def test_bad_tables_are_refused(tables, change, match):
    parts = {name: part.head(60) for name, part in zip(("train", "holdout", "synthetic"), tables, strict=False)}
    for name, how in change.items():
        parts[name] = how(parts[name])
    with pytest.raises(WhosinError, match=match):
        wi.audit_synthetic(**parts)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"query": "nonsense"}, InputError, "nonsense"),
        ({"query": 7}, InputTypeError, "query"),
        ({"query": []}, InputTypeError, "query"),
        ({"query": lambda records, released: [1.0]}, InputError, "must return 60 rows"),
        ({"confidence_level": 1.0}, InputError, "confidence_level"),
        ({"groups": "nobody"}, InputError, "nobody"),
        ({"columns": ["age", "nothing"]}, InputError, "nothing"),
        ({"prior": 0.0}, InputError, "prior"),
    ],
)
def test_bad_options_are_refused(tables, options, error, match):
    parts = [part.head(60) for part in tables[:3]]
    with pytest.raises(error, match=match):
        wi.audit_synthetic(*parts, **options)


def test_arrays_of_different_widths_are_refused():
    with pytest.raises(InputError, match="synthetic must have 2 columns"):
        wi.audit_synthetic(np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(InputTypeError, match="groups must be labels"):
        wi.audit_synthetic(np.eye(5), np.eye(5), np.eye(5), groups="sex")


def test_a_constant_table_has_nothing_to_tell():
    frame = pd.DataFrame({"a": [1] * 20, "b": ["x"] * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        found = wi.audit_synthetic(frame, frame, frame, rng=0)
    assert found.advantage.lower == 0.0
    assert not found.failed
    assert "query copies is 20 for every record" in found.assumes
    assert found.copies == (20, 20)


def test_one_row_each():
    frame = pd.DataFrame({"a": [1.0], "b": ["x"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        found = wi.audit_synthetic(frame, frame, frame, rng=0)
    assert found.advantage.lower == 0.0
    assert 2 * math.sqrt(0.975) - 1 <= found.advantage.upper < 0.98
    assert found.verdict.state == "no verdict"
