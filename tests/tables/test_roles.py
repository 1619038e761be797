"""Columns that are no attributes: found, named, kept on demand; and attributes that look a little like them stay."""

import datetime as dt
import re
import unicodedata

import numpy as np
import pandas as pd
import polars as pl
import pytest
from null_audits import judge_alarms

import whosin as wi
from whosin.errors import AssumptionWarning, InputError, InputTypeError
from whosin.tables import as_stream, as_table, read_table
from whosin.tables.roles import CLOSE, ColumnChoice, attributes, key_columns, person_column

N = 200


def people(seed, n=N, **more):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(18, 90, n),
        "job": rng.choice(["smith", "baker", "nurse", "clerk"], n),
        "income": rng.integers(10_000, 500_000, n),  # whole numbers, most of them different
        "weight": rng.normal(70, 10, n).round(3),
        **{name: make(rng, n) for name, make in more.items()},
    }


def tables(**more):
    names = ("train", "holdout", "synthetic")
    return [as_table(people(seed, **more), name) for seed, name in enumerate(names)]


def keys(rng, n):
    return [f"{key:016x}" for key in rng.integers(2**62, size=n)]


def texts(rng, n):
    words = np.array(["knee", "pain", "since", "May", "left", "visit", "again", "better", "worse", "rest"])
    return [" ".join(words[rng.integers(0, 10, 8)]) for _ in range(n)]


NO_ATTRIBUTES = {
    "running": (lambda rng, n: np.arange(n), "a running number"),
    "one more": (lambda rng, n: np.arange(1, n + 1.0), "a running number"),
    "shuffled": (lambda rng, n: rng.permutation(2 * n)[:n], "different in every row and within a narrow span"),
    "patient_id": (lambda rng, n: rng.choice(10**9, n, replace=False), "mostly different, and called an id"),
    "PatientID": (lambda rng, n: rng.choice(10**9, n, replace=False), "mostly different, and called an id"),
    "Unnamed: 0": (lambda rng, n: rng.choice(10**5, n, replace=False), "mostly different, and called an id"),
    "lesion_id": (lambda rng, n: [f"L{i}" for i in rng.integers(0, n, n)], "mostly different, and called an id"),
    "hash": (keys, "different in every row: a key"),
    "note": (texts, "free text, names or keys|: a key"),
}
ATTRIBUTES = {
    "country": lambda rng, n: ["DE"] * n,  # the same in every row: changes no answer
    "nothing": lambda rng, n: [None] * n,
    "many numbers": lambda rng, n: rng.choice(10**9, n, replace=False),  # all different, by no means row numbers
    "visit_id": lambda rng, n: rng.integers(0, 20, n),  # called an id, and repeats
    "valid": lambda rng, n: rng.choice(10**9, n, replace=False),  # ends in "id", and is no id
    "town": lambda rng, n: rng.choice([f"town {i}" for i in range(60)], n),
    "many towns": lambda rng, n: rng.choice([f"town {i}" for i in range(3 * n)], n),
    "score": lambda rng, n: rng.normal(size=n),  # different in every row
    "seen": lambda rng, n: np.datetime64("2020-01-01T00:00:00") + rng.choice(10**8, n, replace=False),
    "gaps": lambda rng, n: [None if value < 100 else "x" for value in rng.integers(0, n, n)],
}


@pytest.mark.parametrize("name", NO_ATTRIBUTES)
def test_what_numbers_or_names_rows_is_left_out(name):
    make, why = NO_ATTRIBUTES[name]
    given = tables(**{name: make})
    columns, left = attributes(given[:2], given[2:])
    assert columns == ["age", "job", "income", "weight"]
    assert list(left) == [name]
    assert re.search(why, left[name])
    assert attributes(given[:2], given[2:], keep=[name]) == ([*columns, name], {})


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_stay(name):
    given = tables(**{name: ATTRIBUTES[name]})
    assert attributes(given[:2], given[2:]) == ([*given[0].names], {})


def test_the_numbers_of_few_rows_say_nothing():
    given = [as_table({"age": [31, 32, 33 + i, 40], "x": [5, 7, 6, 8]}) for i in range(3)]
    assert attributes(given[:2], given[2:])[1] == {}


def released(synthetic, kind, cells):
    """A release with other cells in a column, in memory and in blocks."""
    frame = pl.DataFrame({name: synthetic.column(name) for name in synthetic.names}).with_columns(
        pl.Series(kind, cells)
    )
    return as_table(frame, "synthetic"), as_stream([frame], "synthetic", block_rows=50)


@pytest.mark.parametrize("kind", ["hash", "note", "patient_id"])
def test_the_release_alone_tells_keys_and_texts(kind):
    """Whatever the records hold: keys of their own, keys that the release has, few values, or none at all."""
    train, holdout, synthetic = tables(**{kind: NO_ATTRIBUTES[kind][0]})
    empty = [None] * N
    for records in ([train, holdout], [synthetic, holdout], [train, synthetic]):
        for cells in (records[0].column(kind), np.repeat(records[0].column(kind)[:4], N // 4), empty):
            changed = released(records[0], kind, cells)[0], records[1]
            for release in released(synthetic, kind, synthetic.column(kind)):
                assert list(attributes(changed, [release])[1]) == [kind]
                assert key_columns({kind: attributes(changed, [release])[1][kind]}, [*changed, release]) == [kind]
            few = np.repeat(synthetic.column(kind)[:50], 4)
            for release in released(synthetic, kind, few):
                assert attributes(changed, [release])[1] == {}


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
@pytest.mark.parametrize("block_rows", [None, 50])
@pytest.mark.parametrize("kind", ["day", "paid"])
def test_attributes_that_a_release_has_as_text_are_refused_and_not_left_out(kind, block_rows, tmp_path):
    """Parquet keeps text as text, CSV gives numbers and dates; as labels on all sides the answers are the same."""
    rng = np.random.default_rng(5)
    paths = {}
    for role in ("train", "holdout", "synthetic"):
        cells = [
            f"20{i:02}-0{j}-11" if kind == "day" else f"{i}.{j}" for i, j in rng.integers(1, 10, (150, 2)) * (9, 1)
        ]
        frame = pl.DataFrame(
            {kind: [f"{cell[:-1]}{k % 9 + 1}" for k, cell in enumerate(cells)], "age": np.arange(150) % 40}
        )
        paths[role] = tmp_path / f"{role}.csv"
        frame.write_csv(paths[role])
    frame.write_parquet(tmp_path / "synthetic.parquet")
    other = {**paths, "synthetic": tmp_path / "synthetic.parquet"}
    with pytest.raises(InputError, match=rf"column '{kind}' must hold one kind of cells.*categories"):
        wi.audit_synthetic(**other, rng=0, block_rows=block_rows)
    ours, theirs = (
        wi.audit_synthetic(**files, rng=0, categories=[kind], block_rows=block_rows) for files in (paths, other)
    )
    assert ours.advantage == theirs.advantage
    assert ours.left_out == theirs.left_out


@pytest.mark.parametrize("kind", ["hash", "note", "patient_id"])
def test_a_key_that_the_release_repeats_is_a_leak(kind, tmp_path):
    """Sixty of 200 training keys stand in a release whose other cells are new; read in blocks it is the same."""
    train, holdout, synthetic = tables(**{kind: NO_ATTRIBUTES[kind][0]})
    cells = [*train.column(kind)[:60], *synthetic.column(kind)[60:]]
    found = [wi.audit_synthetic(train, holdout, release, rng=0) for release in released(synthetic, kind, cells)]
    assert [list(audit.left_out) for audit in found] == [[kind]] * 2
    assert found[0].verdict.state == found[1].verdict.state == "leak"
    assert found[0].advantage == found[1].advantage
    assert 0.1 < found[0].advantage.lower <= 0.3
    assert "repeated_keys" in found[0].queries
    assert wi.audit_synthetic(train, holdout, synthetic, rng=0).verdict.state == "none found"


def test_a_repeated_key_counts_by_its_rarity():
    notes = ["none"] * 8 + [f"seen at {i}" for i in range(22)]
    train, holdout, release = ({"age": [30 + i % 7 for i in range(30)], "note": list(notes)} for _ in range(3))
    train["note"][5:8], holdout["note"] = [None, "unseen", "seen at 3"], ["unseen"] * 30
    train["note"][0] = None  # polars makes something else of objects that start with nothing
    from whosin.auditing.releases.queries.keys import repeated_keys

    found = repeated_keys([as_table(train), as_table(holdout)], as_table(release), ["note"])
    expected = [0.0] + [np.log(30 / 8)] * 4 + [0.0, 0.0, np.log(30)] + [np.log(30)] * 22 + [0.0] * 30
    assert found.rarity == pytest.approx(expected, abs=1e-12)
    assert found.repeated == ("note",)


@pytest.mark.parametrize("kind", ["hash", "patient_id"])
def test_the_column_with_the_repeated_key_is_named_as_the_one_that_gives_people_away(kind):
    """All other cells are new, so without the key nothing is left."""
    train, holdout, synthetic = tables(**{kind: NO_ATTRIBUTES[kind][0]})
    release = released(synthetic, kind, [*train.column(kind)[:60], *synthetic.column(kind)[60:]])[0]
    found = wi.audit_synthetic(train, holdout, release, rng=0).revealing_columns
    assert found.names[int(np.argmax(found.lost))] == kind
    assert max(found.lost) > 0.2
    assert found.advantage >= 0.3


def test_keys_are_the_same_however_they_are_written():
    """Numbers in one table and text in another, capitals, blanks, zeros; what is missing equals nothing."""
    from whosin.auditing.releases.queries.keys import key_codes, repeated_keys

    ages = {"age": [30, 31, 32, 33]}
    train = as_table({**ages, "id": [12, 13, 14, None], "name": ["ADA LOVE", " bob ", None, "eve"]})
    holdout = as_table({**ages, "id": ["12", "x1", None, "012"], "name": ["Ada Love", "rob", "", "Eve"]})
    text = as_table({**ages, "id": ["12", "X1", None, "99"], "name": ["Ada Love", "Bob", None, "ann"]})
    numbers = as_table({**ages, "id": [12, 14, None, 99], "name": ["Ada Love", "Bob", None, "ann"]})
    one, two = np.log(4), 2 * np.log(4)
    expected = {"text": [two, one, 0, 0, two, one, 0, one], "numbers": [two, one, one, 0, two, 0, 0, one]}
    for release, by_record in ((text, expected["text"]), (numbers, expected["numbers"])):
        assert repeated_keys([train, holdout], release, ["id", "name"]).rarity == pytest.approx(by_record, abs=1e-12)
    streets = [as_table({"street": cells}) for cells in (["STRASSE", "ΟΔΟΣ"], ["Gasse", "οδοσ"], ["Straße", "οδος"])]
    assert repeated_keys(streets[:2], streets[2], ["street"]).rarity == pytest.approx([np.log(2)] * 2 + [0, np.log(2)])
    sides = key_codes([train, holdout, text], "id")
    assert [len(side) for side in sides] == [4, 4, 4]
    equal = sides[0][:, None] == sides[2][None, :]
    assert np.argwhere(equal).tolist() == [[0, 0]]


@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_ids_may_be_numbers_on_one_side_and_text_on_the_other(kind):
    """The tables go through, in memory and in blocks, and answer alike."""
    train, holdout, synthetic = tables(patient_id=NO_ATTRIBUTES["patient_id"][0])
    holdout = released(holdout, "patient_id", [f"A{i:.0f}" for i in holdout.column("patient_id")])[0]
    ids = synthetic.column("patient_id")
    releases = released(synthetic, "patient_id", ids if kind == "numbers" else [f"A{i:.0f}" for i in ids])
    found = [wi.audit_synthetic(train, holdout, release, rng=0) for release in releases]
    assert [list(audit.left_out) for audit in found] == [["patient_id"]] * 2
    assert found[0].advantage == found[1].advantage
    repeated = released(synthetic, "patient_id", [*train.column("patient_id")[:60], *ids[60:]])[0]
    assert wi.audit_synthetic(train, holdout, repeated, rng=0).verdict.state == "leak"


def test_names_in_capitals_are_a_leak():
    train, holdout, synthetic = tables(name=texts)
    cells = [*(name.upper() for name in train.column("name")[:60]), *synthetic.column("name")[60:]]
    for release in released(synthetic, "name", cells):
        assert wi.audit_synthetic(train, holdout, release, rng=0).verdict.state == "leak"


def test_ids_that_lie_close_are_looked_up_unless_they_number_rows():
    """Ids of 1 to 400 are dealt to both sides; a release that repeats those of the training rows gives them away."""
    dealt = np.random.default_rng(0).permutation(2 * N) + 1
    sides = [people(seed) | {"patient_id": ids} for seed, ids in enumerate((dealt[:N], dealt[N:]))]
    release = as_table(people(5) | {"patient_id": dealt[N - 1 :: -1]}, "synthetic")
    for given in (release, released(release, "patient_id", release.column("patient_id"))[1]):
        found = wi.audit_synthetic(*sides, given, rng=0)
        assert list(found.left_out) == ["patient_id"]
        assert found.verdict.state == "leak"
        assert found.advantage.lower > 0.9
    fresh = people(5) | {"patient_id": np.arange(1, N + 1)}
    apart = [people(seed) | {"patient_id": np.random.default_rng(seed).permutation(N) + seed * N} for seed in range(2)]
    running = [people(seed) | {"patient_id": np.arange(N) + seed * N} for seed in range(2)]
    for records, given in ((sides, fresh), (apart, release), (running, release)):
        found = wi.audit_synthetic(*records, given, rng=0)
        assert list(found.left_out) == ["patient_id"]
        assert found.verdict.state == "none found"
        assert "repeated_keys" not in found.queries


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
def test_no_false_alarms_where_names_repeat_by_a_toss_up():
    """Releases independent of the training, in which a record's name appears in about half of the worlds."""
    rng = np.random.default_rng(7)

    def side():
        names = [f"name {i}" for i in rng.integers(0, 10_400, 60)]
        return {"age": rng.integers(20, 30, 60), "job": rng.choice(["a", "b", "c"], 60), "name": names}

    worlds = [(side(), side(), side()) for _ in range(10)]
    repeated = [not {*train["name"], *holdout["name"]}.isdisjoint(new["name"]) for train, holdout, new in worlds]
    assert 2 <= sum(repeated) <= 8
    found = [wi.audit_synthetic(*world, rng=rng) for world in worlds]
    assert all(list(audit.left_out) == ["name"] and "repeated_keys" in audit.queries for audit in found)
    judge_alarms(found)


def looked_up(audit):
    return any(name.startswith("repeated_keys") for name in audit.queries)


@pytest.mark.parametrize("kind", ["numbers", "texts", "names"])
def test_a_release_that_repeats_only_whose_a_row_is_gives_them_away(kind):
    """Two rows a person; half of the released people are training people, and all other cells are new."""
    dealt = np.random.default_rng(0).permutation(4 * N)
    dealt = dealt if kind == "numbers" else np.array([f"p{i}" if kind == "texts" else f"{i * 7919:x} x" for i in dealt])
    sides = [people(seed) | {"who": np.repeat(dealt[seed * N : seed * N + N // 2], 2)} for seed in range(2)]
    new = np.repeat(dealt[2 * N : 2 * N + N // 2], 2)
    for whose, state in ((np.where(np.arange(N) < N // 2, sides[0]["who"], new), "leak"), (new, "none found")):
        release = as_table(people(5) | {"who": whose}, "synthetic")
        found = [wi.audit_synthetic(*sides, given, person="who", rng=0) for given in released(release, "who", whose)]
        assert [one.verdict.state for one in found] == [state] * 2
        assert found[0].advantage == found[1].advantage
        assert looked_up(found[0])
    without = as_table(people(5), "synthetic")
    assert not looked_up(wi.audit_synthetic(*sides, without, person="who", rng=0))


WRITTEN = {
    "64 bits": (lambda i: 2**60 + 3 * i + 1, lambda cell: cell),
    "dates": (lambda i: dt.date(1950, 1, 1) + dt.timedelta(i), lambda cell: cell),
    "zeros before": (lambda i: i, lambda cell: f"{cell:06d}"),
    "fractions of zero": (lambda i: i, lambda cell: f"{cell}.0"),
    "accents": (lambda i: f"José {i * 7919:x}", lambda cell: unicodedata.normalize("NFD", cell)),
    "blanks": (lambda i: f"Ada  {i * 7919:x}", lambda cell: cell.replace("  ", " ") + " "),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_people_are_found_however_they_are_written(how):
    name, write = WRITTEN[how]
    dealt = [name(int(i)) for i in np.random.default_rng(0).permutation(4 * N)]
    sides = [pl.DataFrame(people(seed) | {"who": dealt[seed * N : seed * N + N]}) for seed in range(2)]
    whose = [write(cell) for cell in (*dealt[: N // 2], *dealt[2 * N : 2 * N + N // 2])]
    release = pl.DataFrame(people(5) | {"who": whose})
    found = [wi.audit_synthetic(*sides, release, person="who", rng=0, block_rows=rows) for rows in (None, 64)]
    assert [one.verdict.state for one in found] == ["leak"] * 2
    assert found[0].advantage == found[1].advantage


def test_people_who_are_only_numbered_are_not_looked_up():
    """Synthetic people with numbers of their own, or sides of which one has all the smaller numbers."""
    rng = np.random.default_rng(0)
    running, dealt = np.repeat(np.arange(N // 2), 2), np.repeat(rng.permutation(N), 2)
    apart = [as_table(people(seed) | {"who": running + seed * N // 2}) for seed in range(2)]
    mixed = [as_table(people(seed) | {"who": dealt[seed * N : (seed + 1) * N]}) for seed in range(2)]
    texts = [as_table(people(seed) | {"who": [f"id-{i}" for i in running + seed * N // 2]}) for seed in range(2)]
    few = [as_table({"age": [30] * 12, "who": dealt[start : start + 12]}) for start in (0, N)]
    some, same = as_table({"who": dealt[:60]}), as_table({"who": [f"id-{i}" for i in dealt[:60]]})
    assert person_column("who", [*mixed, some]) == ["who"]
    assert person_column("who", [*mixed, as_stream(pl.DataFrame({"who": dealt[:60]}).lazy())]) == ["who"]
    assert person_column("who", [*mixed, as_table({"who": running + 7})]) == []
    assert person_column("who", [*apart, some]) == person_column("who", [*texts, same]) == []
    assert person_column("who", [*few, some]) == []
    assert person_column(None, [*mixed, some]) == person_column("who", [*mixed, as_table({"age": [1]})]) == []


@pytest.mark.parametrize("write", [int, "p{}".format, "P{:05d}".format, lambda i: f"{'AB'[i % 2]}{i}"])
def test_people_numbered_nearly_one_side_after_the_other_are_said_to_differ(write):
    """The release numbers new people from 0 on, so it meets those who were numbered first: no leak, and it is said."""
    first, second = [*range(95), *range(150, 155)], [*range(95, 150), *range(155, 200)]
    numbers = first, second, np.random.default_rng(5).permutation(100)
    sides = [
        {name: cells[:100] for name, cells in people(seed).items()} | {"who": [write(int(i)) for i in ids]}
        for seed, ids in enumerate(numbers)
    ]
    with pytest.warns(AssumptionWarning, match=r"differ even without the release \(column: who\)"):
        found = wi.audit_synthetic(*sides, person="who", rng=0)
    assert found.records_alone.differs


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
def test_no_false_alarms_where_people_are_dealt():
    """Ids of 90 people dealt to both sides and to an independent release, which meets some of each."""
    rng = np.random.default_rng(3)

    def world():
        ids = rng.permutation(90)
        parts = ids[:30], ids[30:60], rng.choice(90, 40, replace=False)
        return [
            {
                "age": rng.integers(20, 30, 2 * len(who)),
                "job": rng.choice(["a", "b"], 2 * len(who)),
                "who": np.repeat(who, 2),
            }
            for who in parts
        ]

    found = [wi.audit_synthetic(*world(), person="who", rng=rng) for _ in range(16)]
    assert all(map(looked_up, found))
    judge_alarms(found)


def test_ids_of_sides_that_differ_are_called_out():
    """Train has earlier ids than holdout, and a generator of numbers meets some of the training ids by chance."""
    rng = np.random.default_rng(4)
    sides = [people(seed) for seed in range(3)]
    for side, (low, high) in zip(sides, ((0, 40_000), (40_000, 80_000), (0, 40_000)), strict=True):
        side["patient_id"] = rng.choice(np.arange(low, high), N, replace=False)
    with pytest.warns(AssumptionWarning, match="patient_id"):
        assert "patient_id" in wi.audit_synthetic(*sides, rng=0).left_out


def test_a_release_may_lack_them_or_have_an_index_of_its_own():
    train, holdout, _ = tables(patient_id=NO_ATTRIBUTES["patient_id"][0])
    release = as_table({"Unnamed: 0": np.arange(N), **people(5)}, "synthetic")
    columns, left = attributes([train, holdout], [release])
    assert columns == ["age", "job", "income", "weight"]
    assert list(left) == ["patient_id", "Unnamed: 0"]
    with pytest.raises(InputError, match=r"tables must have the same columns.*'weight'"):
        attributes([train, holdout], [release.select(["age", "job", "income"])])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("own", [True, False])
def test_the_index_of_a_frame_that_was_split_is_no_attribute(tmp_path, kind, own):
    """pandas writes it without a name; the release has an index of its own, or none."""
    index, read = np.random.default_rng(1).permutation(100 * N), []
    for place in range(3):
        frame = pd.DataFrame(people(place), index=index[place * N : (place + 1) * N])
        frame = frame.reset_index(drop=True) if place == 2 else frame
        path = tmp_path / f"{place}.{kind}"
        (frame.to_csv if kind == "csv" else frame.to_parquet)(path, index=own or place < 2)
        read.append(read_table(path))
    _, left = attributes(read[:2], read[2:])
    name = "Unnamed: 0" if kind == "csv" else "__index_level_0__"
    why = "a running number in the release" if own else "mostly different, and called an id"
    assert left == {name: why}
    assert key_columns(left, read) == []


def test_a_named_index_is_said_to_be_no_column():
    frame = pd.DataFrame({"age": [31, 45]}, index=pd.Index([7, 8], name="who"))
    assert as_table(frame).notes == ("its index 'who' is no column; reset_index() makes it one",)
    assert as_table(frame.reset_index()).notes == as_table(frame.rename_axis(None)).notes == ()


def test_names_can_be_ignored_and_mistakes_are_named():
    given = tables()
    assert attributes(given[:2], given[2:], ignore=["age"])[0] == ["job", "income", "weight"]
    with pytest.raises(InputError, match="ignore must name columns, got 'agee'"):
        attributes(given[:2], given[2:], ignore=["agee"])
    with pytest.raises(InputTypeError, match="keep must be a list"):
        attributes(given[:2], given[2:], keep="age")
    ids = [as_table({"id": np.arange(30)}, name) for name in ("train", "holdout", "synthetic")]
    with pytest.raises(InputError, match="'id' is a running number; keep="):
        ColumnChoice().among(ids[:2], ids[2:])
    assert ColumnChoice().among(ids[:2], ids[2:], none=True)[0] == []


def test_frames_files_streams_and_arrays_leave_out_the_same(tmp_path):
    rng = np.random.default_rng(3)
    frames = [
        pl.DataFrame({"row": np.arange(80), "x": rng.normal(size=80), "y": rng.normal(size=80)}) for _ in range(3)
    ]
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for frame, path in zip(frames, paths, strict=True):
        frame.write_parquet(path)
    arrays = [frame.to_numpy() for frame in frames]
    found = [
        wi.audit_synthetic(*frames, rng=0),
        wi.audit_synthetic(*paths, rng=0),
        wi.audit_synthetic(*paths, block_rows=30, rng=0),
        wi.audit_synthetic(*arrays, rng=0),
    ]
    reasons = [list(audit.left_out.values()) for audit in found]
    assert reasons == [["a running number"]] * 4
    assert len({audit.advantage.estimate for audit in found[:3]}) == 1
    assert found[0].to_dict()["left_out"] == {"row": "a running number"}
    assert any("column 'row' was left out: a running number" in note for note in found[0].notes)
    plain = wi.audit_synthetic(*(array[:, 1:] for array in arrays), rng=0)
    assert plain.advantage == found[3].advantage
    with pytest.warns(AssumptionWarning, match="equal values of row"):
        kept = wi.audit_synthetic(*frames, keep=["row"], rng=0)
    assert (kept.left_out, kept.columns) == ({}, ("row", "x", "y"))


@pytest.mark.parametrize("n", [20, 21, 25, 40, 100])
def test_no_uniform_attribute_passes_for_numbers_of_rows_but_by_a_rare_chance(n):
    """P(n draws are different within s = n²/20 values), by counting, for uniform laws on m values."""
    from fractions import Fraction
    from math import comb, exp, factorial

    s = n * n // CLOSE
    sets = {m: comb(m, n) if m <= s else (m - s + 1) * comb(s, n) - (m - s) * comb(s - 1, n) for m in range(n, 3 * s)}
    worst = max(Fraction(factorial(n) * count, m**n) for m, count in sets.items())
    assert 0 < worst <= exp(-9)
