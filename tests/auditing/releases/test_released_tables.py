"""The verdict on a released table: plain leaks are found, chance is not, and a set-up that allows none gets none."""

import warnings

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.errors import AssumptionWarning, InputError


def rows(count, rng):
    """Rows of numbers and categories, hardly ever equal by chance."""
    return pl.DataFrame(
        {
            "age": rng.integers(18, 80, count),
            "income": rng.lognormal(10.0, 1.0, count).round(0),
            "sex": np.array(["m", "f"])[rng.integers(0, 2, count)],
            "job": np.array(list("abcdefgh"))[rng.integers(0, 8, count)],
            "height": rng.normal(170.0, 10.0, count).round(1),
        }
    )


def panel(people, visits, first, rng):
    """Several visits of each person: near-equal rows, and who they are of."""
    who = np.repeat(np.arange(first, first + people), visits)
    means = rng.normal(size=(people, 5))
    values = means[who - first] + 0.05 * rng.normal(size=(len(who), 5))
    return pl.DataFrame({"person": who, **{f"x{i}": values[:, i] for i in range(5)}})


def audited(*parts, **options):
    """An audit without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return wi.audit_synthetic(*parts, **options)


@pytest.mark.parametrize(("train_rows", "held_out", "copied"), [(500, 500, 50), (1000, 1000, 60), (200, 150, 50)])
def test_verbatim_copies_are_found(train_rows, held_out, copied):
    """They were missed in 10 of 10 runs while attacks were chosen by their values on the fit part."""
    for seed in range(2):
        rng = np.random.default_rng([seed, train_rows])
        train, holdout, fresh = (rows(count, rng) for count in (train_rows, held_out, train_rows))
        found = audited(train, holdout, pl.concat([fresh[copied:], train[:copied]]), tolerate=0.02)
        assert found.verdict.state == "exceeds"
        assert found.advantage.lower <= copied / train_rows
        assert found.copies == (copied, 0)


@pytest.mark.parametrize("copied", ["income", "town"])
def test_values_of_one_column_that_are_copied_are_found(copied):
    """All other columns of the release are those of strangers: no row of it is near a training row."""
    rng = np.random.default_rng(5)
    crowd = pl.DataFrame(
        {
            "age": rng.integers(18, 80, 1600),
            "income": rng.lognormal(10, 1, 1600).round(1),
            "town": [f"town {number}" for number in rng.zipf(1.3, 1600) % 3000],
            "sex": rng.choice(["m", "f"], 1600),
        }
    )
    train, holdout, others = crowd[:400], crowd[400:800], crowd[800:1200]
    options = {"keep": ["income", "town"], "rng": 0}
    found = wi.audit_synthetic(train, holdout, others.with_columns(train[copied].shuffle(3)), **options)
    assert found.advantage.lower > {"income": 0.8, "town": 0.1}[copied]
    assert wi.audit_synthetic(train, holdout, others, **options).advantage.lower == 0.0


def test_columns_that_are_kept_while_the_others_are_made_up_are_found():
    """Rows compared on the whole gave limits of .45 to .48: chance fills the other columns as well."""
    rng = np.random.default_rng(7)
    kinds = rng.integers(6, size=1200)
    crowd = pl.DataFrame(
        {f"c{i}": ((rng.zipf(1.7, 1200).clip(max=60) + kinds) % (6 + 4 * i)).astype(str) for i in range(10)}
    )
    train, holdout, others = crowd[:400], crowd[400:800], crowd[800:]
    kept = [f"c{i}" for i in range(5, 10)]
    found = wi.audit_synthetic(train, holdout, others.with_columns(train[name] for name in kept), rng=0)
    assert found.advantage.lower > 0.6
    assert wi.audit_synthetic(train, holdout, others, rng=0).advantage.lower == 0.0


def test_the_lower_limit_hardly_moves_with_the_seed():
    rng = np.random.default_rng(4)
    train, holdout, fresh = (rows(400, rng) for _ in range(3))
    near = train[:120].with_columns(pl.Series("income", rng.lognormal(10.0, 1.0, 120).round(0)))
    release = pl.concat([near, fresh[120:]])
    lower = [audited(train, holdout, release, rng=seed).advantage.lower for seed in range(3)]
    assert min(lower) > 0.0
    assert max(lower) - min(lower) <= 0.03


def test_the_same_tables_give_the_same_answer():
    rng = np.random.default_rng(5)
    parts = [rows(150, rng) for _ in range(3)]
    one, two = audited(*parts), audited(*(part.to_pandas() for part in parts))
    assert one.advantage == two.advantage
    assert one._splits.seed == two._splits.seed
    assert any("seeded by the fingerprints" in line for line in one.assumes)
    assert str(one._splits.seed) in one.method


def test_one_headline_and_no_larger_limit_elsewhere():
    rng = np.random.default_rng(6)
    train, holdout, fresh = (rows(300, rng) for _ in range(3))
    found = audited(train, holdout, pl.concat([train[:90], fresh[90:]]))
    assert found.verdict.state == "leak"
    *single, (_, together) = found.queries.items()
    assert (together.estimate, together.lower, together.upper) == (
        found.advantage.estimate,
        found.advantage.lower,
        found.advantage.upper,
    )
    assert all(alone.lower <= found.advantage.lower for _, alone in single)
    assert found.release_size.advantages[-1] == found.advantage
    assert all(at.lower <= found.advantage.lower for at in found.release_size.advantages)
    fpr = np.linspace(0.0, 1.0, 501)
    assert np.max(found.band.lower.tpr(fpr) - fpr) <= found.advantage.lower + 1e-12
    payload = found.to_dict()
    assert payload["verdict"]["sentence"] in found.explain()
    assert payload["release_size"]["advantages"][-1] == payload["advantage"]


def test_few_released_rows_tell_no_more_than_they_have():
    """After m rows at most m members are copied; the share of a record's rarity once knew all later rows."""
    rng = np.random.default_rng(7)
    train, holdout, fresh = (rows(300, rng) for _ in range(3))
    curve = audited(train, holdout, pl.concat([train[:200], fresh[200:]])).release_size
    earlier = list(zip(curve.sizes, curve.advantages, strict=True))[:-1]
    assert all(at.lower <= size / 300 for size, at in earlier)


def test_rows_of_one_person_are_no_people():
    """100 people with ten visits each: counted as rows they cry wolf, so that no verdict is given of them."""
    alarms = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, 8])
        train, holdout, release = panel(100, 10, 0, rng), panel(100, 10, 100, rng), panel(100, 10, 200, rng)
        told = audited(train, holdout, release, person="person")
        assert (told.members, told.non_members, told.unit) == (100, 100, "people")
        alarms += told.advantage.lower > 0.0
        if seed < 2:
            untold = audited(*(part.drop("person") for part in (train, holdout, release)))
            assert untold.verdict.state == "no verdict"
            assert "repeat each other" in untold.verdict.sentence
            assert "same population" not in untold.explain()
            assert untold.records_alone is None
    assert alarms <= 1  # two or more at a level of 5 %: 3 %; rows in the place of people gave 7 in 12


def test_a_leak_is_found_by_person():
    rng = np.random.default_rng(9)
    train, holdout, release = panel(120, 4, 0, rng), panel(120, 4, 120, rng), panel(120, 4, 240, rng)
    found = audited(train, holdout, pl.concat([release[:240], train[:240]]), person="person")
    assert found.verdict.state == "leak"
    assert found.copies == (60, 0)
    assert found.individual.to_dict()["highest"][0]["person"] == str(
        int(found.individual.highest(1, "member")[0]["index"])
    )
    assert len(found.closest) == 240
    assert "people" in found.explain()


def test_relatives_on_both_sides_are_told():
    rng = np.random.default_rng(10)
    train, fresh = rows(300, rng), rows(300, rng)
    holdout = pl.concat([train[:120].with_columns(pl.col("height") + 0.1), rows(180, rng)])
    found = audited(train, holdout, fresh)
    assert found.dependence.straddling
    assert "hide a leak" in found.explain()


def same_tables(train, holdout, rng):
    return train, train.clone(), rows(200, rng)


def mostly_equal(train, holdout, rng):
    return train, pl.concat([train[:150], holdout[:50]]), rows(200, rng)


def released_holdout(train, holdout, rng):
    return train, holdout, pl.concat([rows(120, rng), holdout[:80]])


@pytest.mark.parametrize("set_up", [same_tables, mostly_equal, released_holdout])
def test_a_holdout_that_was_not_held_out_gets_no_verdict(set_up):
    rng = np.random.default_rng(11)
    parts = set_up(rows(200, rng), rows(200, rng), rng)
    with pytest.warns(AssumptionWarning, match="held out"):
        found = wi.audit_synthetic(*parts, tolerate=0.5)
    assert found.verdict.state == "no verdict"
    assert "held out" in found.verdict.sentence
    assert "took no part in the training" in found.verdict.sentence
    assert found.explain().startswith("No verdict: ")


def test_a_missing_holdout_names_three_ways_out():
    rng = np.random.default_rng(12)
    with pytest.raises(InputError, match=r"holdout is missing.*\(1\).*\(2\).*\(3\)"):
        wi.audit_synthetic(rows(20, rng), None, rows(20, rng))


def test_tables_by_path(tmp_path):
    rng = np.random.default_rng(13)
    parts = [rows(80, rng) for _ in range(3)]
    paths = [tmp_path / f"{name}.parquet" for name in ("train", "holdout", "synthetic")]
    for part, path in zip(parts, paths, strict=True):
        part.write_parquet(path)
    assert audited(*paths).advantage == audited(*parts).advantage


@pytest.mark.parametrize("person", ["nobody", 7, (["a"], ["b"])])
def test_wrong_people_are_refused(person):
    rng = np.random.default_rng(14)
    with pytest.raises((InputError, TypeError), match="person"):
        wi.audit_synthetic(*(rows(20, rng) for _ in range(3)), person=person)


def test_what_was_checked_is_not_called_unchecked():
    rng = np.random.default_rng(15)
    found = audited(*(rows(150, rng) for _ in range(3)))
    assert not found.records_alone.differs
    assert not any("nobody checked" in line for line in found.assumes)
    assert any("compared without the release" in line for line in found.assumes)
