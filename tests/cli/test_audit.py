"""``whosin audit`` as a user runs it."""

import dataclasses
import json
import re

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from whosin.cli.app import app
from whosin.numerics.rounding import at_least, at_most

runner = CliRunner()

RELEASE = ("--train", "{0}/train.csv", "--holdout", "{0}/holdout.parquet", "--synthetic", "{0}/leaky.csv")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    rng = np.random.default_rng(4)

    def rows(n):
        return pl.DataFrame(
            {"x": rng.normal(size=n).round(3), "y": rng.normal(size=n), "sex": rng.choice(["f", "m"], n)}
        )

    train, holdout, fresh = rows(300), rows(300), rows(300)
    train.write_csv(folder / "train.csv")
    holdout.write_parquet(folder / "holdout.parquet")
    pl.concat([train.head(200), fresh.head(100)]).write_csv(folder / "leaky.csv")
    fresh.write_ipc(folder / "fresh.arrow")
    scores = pl.DataFrame({"score": rng.normal(size=400) + np.repeat([1.5, 0.0], 200), "member": [1] * 200 + [0] * 200})
    scores.with_columns(group=pl.Series(["a", "b"] * 200)).write_csv(folder / "scores.csv")
    pl.DataFrame({"score": [0.5, None, 0.25], "member": [1, 0, 1]}).write_csv(folder / "gaps.csv")
    return folder


def run(*words):
    return runner.invoke(app, ["audit", *map(str, words)])


def tables(files, release="leaky.csv"):
    return (
        "--train", files / "train.csv", "--holdout", files / "holdout.parquet", "--synthetic", files / release,
        "--seed", 1, "--jobs", 1,
    )  # fmt: skip


def test_a_leak_in_words(files):
    seen = run(*tables(files), "--group", "sex", "--target", 0.5, "--verbose")
    assert seen.exit_code == 0, seen.output
    assert seen.stdout.startswith("Leak found: ")
    for words in ("most exposed", "sex=f", "rows released", "This assumes"):
        assert words in seen.output
    assert "safe" not in seen.output.lower()


def test_copies_by_chance_stand_beside_copies(files, tmp_path):
    """6 of 150 held-out rows were released with 12 of 300 training rows: as many as chance alone would give."""
    train, holdout = pl.read_csv(files / "train.csv"), pl.read_parquet(files / "holdout.parquet").head(150)
    for name, table in (("outside", holdout), ("some", pl.concat([train.head(12), holdout.head(6)]))):
        table.write_csv(tmp_path / f"{name}.csv")
    report, said = tmp_path / "audit.html", "so chance alone would give about 12 of the members"
    words = "--train", files / "train.csv", "--holdout", tmp_path / "outside.csv", "--synthetic", tmp_path / "some.csv"
    seen = run(*words, "--jobs", 1, "--report", report)
    assert said in " ".join(seen.stdout.split())
    assert said in report.read_text(encoding="utf-8")


def test_json_has_the_contract(files):
    seen = run(*tables(files), "--json", "--target", 0.5)
    payload = json.loads(seen.stdout)
    assert next(iter(payload)) == "verdict"
    assert payload["verdict"]["state"] == "leak"
    assert payload["advantage"]["lower"] > 0.3
    for key in ("prior", "members", "non_members", "query", "kind", "roc", "individual", "assumes", "largest_release"):
        assert key in payload


@pytest.mark.parametrize(
    ("release", "words", "state", "code"),
    [
        ("leaky.csv", (), "leak", 0),
        ("fresh.arrow", (), "none found", 0),
        ("leaky.csv", ("--tolerate", 0.2), "exceeds", 1),
        ("leaky.csv", ("--fail-above", 0.2), "exceeds", 1),
        ("leaky.csv", ("--tolerate", 0.2, "--strict"), "exceeds", 1),
        ("leaky.csv", ("--tolerate", 0.95, "--strict"), "within", 0),
        ("fresh.arrow", ("--tolerate", 0.01), "undecided", 0),
        ("fresh.arrow", ("--tolerate", 0.01, "--strict"), "undecided", 1),
    ],
)
def test_gate(files, release, words, state, code):
    seen = run(*tables(files, release), *words, "--query", "nearest", "--json")
    verdict = json.loads(seen.stdout)["verdict"]
    assert (verdict["state"], seen.exit_code) == (state, code), seen.output
    assert seen.stderr == (f"{verdict['sentence']}\n" if code else "")
    assert verdict["tolerate"] == (words[1] if words else None)


def equal_tables(files):
    same = files / "train.csv"
    return "--train", same, "--holdout", same, "--synthetic", files / "fresh.arrow", "--jobs", 1


@pytest.mark.parametrize("words", [(), ("--tolerate", 0.99)])
def test_no_verdict_from_equal_tables(files, tmp_path, words):
    """Exit code 2 with the reason, after everything was printed and the report written."""
    report = tmp_path / "audit.html"
    promise = "--target", 0.99, "--promised-epsilon", 9
    text = run(*equal_tables(files), *words, *promise, "--report", report)
    payload = run(*equal_tables(files), *words, *promise, "--json")
    assert (text.exit_code, payload.exit_code) == (2, 2)
    known = json.loads(payload.stdout)
    assert known["verdict"]["state"] == "no verdict"
    assert known["largest_release"]["rows"] is None
    assert known["comparison"] is None
    reason = known["verdict"]["sentence"]
    assert reason.startswith("No verdict: ")
    for seen in (text, payload):
        assert reason in seen.stderr
        assert "Traceback" not in seen.output
    assert " ".join(text.stdout.split()).startswith(reason)
    assert "--verbose prints them" in text.stdout
    for comfort in ("is shown for", "Within the tolerated", "consistent"):
        assert comfort not in text.stdout
    assert reason.removeprefix("No verdict: ")[1:40] in report.read_text(encoding="utf-8").split("<nav")[0]


def test_no_verdict_of_scores(files, monkeypatch):
    """Whatever finds the problem: the exit code is that of the verdict."""
    from whosin.auditing.measuring import score_table as scores

    real = scores.audit_score_table
    monkeypatch.setattr(
        scores, "audit_score_table", lambda *a, **k: dataclasses.replace(real(*a, **k), problem="a reason.")
    )
    seen = run("--scores", files / "scores.csv", "--columns", "score", "--tolerate", 1)
    assert seen.exit_code == 2
    assert seen.stdout.startswith("No verdict: a reason.")
    assert seen.stderr == "No verdict: a reason.\n"


def test_without_held_out_rows_copies_are_counted_and_no_verdict_is_given(files):
    words = "--train", files / "train.csv", "--synthetic", files / "leaky.csv", "--jobs", 1
    text, payload = run(*words), run(*words, "--json", "--tolerate", 1)
    assert (text.exit_code, payload.exit_code) == (2, 2)
    assert "200 appear in the release of 300 rows word for word" in text.stdout
    known = json.loads(payload.stdout)
    assert known["verdict"]["state"] == "no verdict"
    assert (known["copies"]["copies"], known["copies"]["rows"]) == (200, 300)
    for seen in (text, payload):
        assert "No verdict without held-out rows: whether" in seen.stderr
        for way in ("Keep some rows back", "train it again on random halves", "Count the training rows"):
            assert way in seen.stderr


def test_several_rows_of_a_person_count_once(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"score": rng.normal(size=300), "member": [1, 0] * 150, "who": [f"p{i % 100}" for i in range(300)]}
    )
    frame.write_csv(tmp_path / "people.csv")
    payload = json.loads(run("--scores", tmp_path / "people.csv", "--person", "who", "--json").stdout)
    assert payload["person_level"] is True
    assert (payload["members"], payload["non_members"]) == (50, 50)
    text = run("--scores", tmp_path / "people.csv", "--person", "who", "--columns", "score", "--verbose").stdout
    assert "If 0.5 of all people are members" in " ".join(text.split())
    assert "p1" in text.split("most exposed")[1]


def test_the_person_column_is_not_compared(files, tmp_path):
    """Two rows each, whose identifiers would give every member away."""
    paths = {}
    for role, name, prefix in (("train", "train.csv", "t"), ("holdout", "holdout.parquet", "h")):
        frame = pl.read_csv(files / name) if name.endswith("csv") else pl.read_parquet(files / name)
        paths[role] = tmp_path / f"{role}.csv"
        frame.with_columns(who=pl.Series([f"{prefix}{i // 2}" for i in range(len(frame))])).write_csv(paths[role])
    words = "--train", paths["train"], "--holdout", paths["holdout"], "--synthetic", files / "fresh.arrow", "--jobs", 1
    payload = json.loads(run(*words, "--person", "who", "--query", "nearest", "--json").stdout)
    assert (payload["members"], payload["non_members"], payload["person_level"]) == (150, 150, True)
    assert payload["verdict"]["state"] == "none found"
    counted = run(*words[:2], *words[4:], "--person", "who")
    assert counted.exit_code == 2
    assert "Of 300 training rows, 0 appear" in counted.stdout


def test_columns_that_are_not_compared_are_named_with_the_reason(files, tmp_path):
    paths = {}
    for role, name in (("train", "train.csv"), ("holdout", "holdout.parquet"), ("synthetic", "fresh.arrow")):
        read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}[name.split(".")[1]]
        frame = read(files / name)
        paths[role] = tmp_path / f"{role}.csv"
        case = pl.Series("case", [f"{role} {i}" for i in range(len(frame))])
        frame.with_row_index("row").with_columns(case).write_csv(paths[role])
    words = [*(part for role, path in paths.items() for part in (f"--{role}", path)), "--query", "nearest"]
    text = " ".join(run(*words, "--jobs", 1).stdout.split())
    assert "Left out: row (a running number), case (different in every row: a key). --keep compares them" in text
    text = " ".join(run(*words, "--jobs", 1, "--keep", "row,case").stdout.split())
    assert "Left out" not in text


def test_rates_that_so_few_outsiders_cannot_show(files):
    text = run("--scores", files / "scores.csv", "--columns", "score", "--verbose").stdout
    assert "asked for" in text
    assert "measured" in text
    assert "really" not in text
    assert re.search(r"^0\.001 is not measurable with \d+ outsiders: it takes at least 1000\.$", text, re.M)
    row = re.search(r"^0\.001 +- +- +- +-$", text, re.M)
    assert row


def test_the_same_headline_everywhere(files, tmp_path):
    """Text, tables, JSON, report and the curve of sizes state one advantage with one pair of limits."""
    report = tmp_path / "audit.html"
    seen = run(*tables(files), "--report", report, "--verbose")
    payload = json.loads(run(*tables(files), "--json").stdout)
    found = payload["advantage"]
    low, high = at_least(found["lower"], 3), at_most(found["upper"], 3)
    sentence = payload["verdict"]["sentence"]
    assert f"at least {low}, and at most {high}" in sentence
    assert " ".join(seen.stdout.split()).startswith(sentence)
    *alone, together = payload["queries"].values()
    assert (together["lower"], together["upper"]) == (found["lower"], found["upper"])
    assert all(query["lower"] <= found["lower"] for query in alone)
    curve = payload["release_size"]["advantages"]
    assert [curve[-1][side] for side in ("estimate", "lower", "upper")] == [
        together[side] for side in ("estimate", "lower", "upper")
    ]
    assert all(point["lower"] <= found["lower"] for point in curve)
    printed = re.findall(rf"^(\S.*?) +\S+ +{re.escape(low)} +{re.escape(high)}$", seen.stdout, re.M)
    assert len(printed) == 2, seen.stdout
    page = " ".join(re.sub(r"<[^>]+>", "", report.read_text(encoding="utf-8")).split())
    assert payload["verdict"]["headline"] in page.split("The picture")[0]
    assert sentence in page


def test_scores_of_any_attack(files):
    seen = run("--scores", files / "scores.csv", "--group", "group", "--seed", 0, "--json")
    payload = json.loads(seen.stdout)
    assert payload["advantage"]["lower"] > 0.25
    assert {row["name"] for row in payload["groups"]} == {"group=a", "group=b"}
    assert run("--scores", files / "scores.csv", "--columns", "score").exit_code == 0


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ((), "--train"),
        (("--train", "none.csv", "--holdout", "none.csv", "--synthetic", "none.csv"), "no such file"),
        (("--scores", "{0}/scores.csv", "--train", "{0}/train.csv"), "--scores goes without --train"),
        (("--scores", "{0}/scores.csv", "--member-column", "nobody"), "nobody"),
        (
            ("--scores", "{0}/scores.csv", "--member-column", "score"),
            "scores.csv line 2 column 'score' must be 1 or 0, got",
        ),
        (("--scores", "{0}/scores.csv", "--strict"), "--strict goes with"),
        (("--scores", "{0}/scores.csv", "--columns", "group,score"), "must have columns of numbers"),
        (("--scores", "{0}/scores.csv", "--columns", "score,member"), "which says who is a member"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--seed", -1), "--seed"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--top", -1), "--top"),
        (("--scores", "{0}/scores.csv", "--columns", "score", "--fail-above", "nan"), "--tolerate must be"),
        (
            ("--train", "{0}/train.csv", "--synthetic", "{0}/leaky.csv", "--report", "a.html"),
            "--report goes with --holdout",
        ),
        (("--scores", "{0}/gaps.csv"), "gaps.csv line 3 column 'score' must have a score, got a missing cell"),
        ((*RELEASE, "--target", 1.5), "--target must be a number in [0, 1], got 1.5"),
        ((*RELEASE, "--jobs", 0), "--jobs must be"),
        ((*RELEASE, "--assignment", "independent trainings"), "comes from one training"),
        ((*RELEASE, "--group", "height"), "no column 'height'"),
    ],
)
def test_mistakes_are_explained(files, words, match):
    seen = run(*(str(word).format(files) for word in words))
    assert seen.exit_code == 2
    assert match in seen.stderr
    assert seen.stdout == ""
    assert "Traceback" not in seen.output


def test_names_in_brackets_are_names(tmp_path):
    """What looks like the markup of the printing library is printed as it is."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"loss[/b]": rng.normal(size=80), "member": [1, 0] * 40, "[/x]": [":smile:", "[red]"] * 40})
    frame.write_csv(tmp_path / "odd.csv")
    seen = run("--scores", tmp_path / "odd.csv", "--group", "[/x]", "--columns", "loss[/b]", "--seed", 0)
    assert seen.exit_code == 0, seen.output
    for words in ("loss[/b]", "[/x]=:smile:", "[/x]=[red]"):
        assert words in seen.stdout


def test_a_group_of_a_column_that_is_not_compared(files):
    seen = run(*tables(files), "--columns", "x,y", "--group", "sex", "--query", "nearest", "--json")
    assert [row["name"] for row in json.loads(seen.stdout)["groups"]] == ["sex=f", "sex=m"]


def test_a_holdout_of_another_population_warns_on_stderr(files, tmp_path):
    holdout = pl.read_parquet(files / "holdout.parquet").with_columns(pl.col("x") + 3.0)
    holdout.write_csv(tmp_path / "other.csv")
    seen = run(
        "--train", files / "train.csv", "--holdout", tmp_path / "other.csv", "--synthetic", files / "fresh.arrow",
        "--query", "nearest", "--seed", 0, "--json",
    )  # fmt: skip
    assert "differ even without the release" in seen.stderr
    json.loads(seen.stdout)


def compared(seen):
    """What was printed, but for what needs a whole release at once: its preview, its lines, columns hidden in turn."""
    shown = json.loads(seen.stdout)
    for row in shown["individual"]["highest"]:
        row.pop("released_place")
    return {name: value for name, value in shown.items() if name not in ("preview", "revealing_columns")}


def test_a_release_read_in_blocks_gives_the_same(files):
    rows = ("--train", files / "train.csv", "--holdout", files / "holdout.parquet", "--seed", 1, "--jobs", 1, "--json")
    whole = run(*rows, "--synthetic", files / "fresh.arrow")
    blocks = run(*rows, "--synthetic", files / "fresh.arrow", "--block-rows", 70)
    assert (whole.exit_code, blocks.exit_code) == (0, 0)
    assert compared(blocks) == compared(whole)
    text = run(*rows, "--synthetic", files / "leaky.csv")
    assert compared(run(*rows, "--synthetic", files / "leaky.csv", "--block-rows", 70)) == compared(text)
    scores = run("--scores", files / "scores.csv", "--block-rows", 70)
    assert scores.exit_code == 2
    assert "--scores goes without --block-rows" in scores.stderr
    for option in ("--ignore", "--keep"):
        refused = run("--scores", files / "scores.csv", option, "score")
        assert refused.exit_code == 2
        assert f"--scores goes without {option}" in refused.stderr


def test_a_report_with_and_without_the_list_of_people(files, tmp_path):
    pages = {}
    for option in ("--individuals", "--no-individuals"):
        path = tmp_path / f"{option}.html"
        done = run("--scores", files / "scores.csv", "--columns", "score", "--report", path, option)
        assert done.exit_code == 0, done.output
        pages[option] = path.read_text(encoding="utf-8")
    listed = "members with the highest scores"
    assert listed in pages["--individuals"]
    assert listed not in pages["--no-individuals"]


def test_files_as_people_have_them(files, tmp_path):
    train, holdout = pl.read_csv(files / "train.csv"), pl.read_parquet(files / "holdout.parquet")
    both = pl.concat([train.with_columns(split=pl.lit("train")), holdout.with_columns(split=pl.lit("test"))])
    both.write_csv(tmp_path / "both.csv", separator=";", decimal_comma=True)
    more = ("--member-column", "split", "--member-value", "train", "--seed", 1, "--jobs", 1, "--json")
    one = run("--records", tmp_path / "both.csv", "--synthetic", files / "leaky.csv", *more)
    assert one.exit_code == 0, one.output
    two = json.loads(run(*tables(files), "--json").stdout)
    assert json.loads(one.stdout)["advantage"] == two["advantage"]
    wrong = run("--records", tmp_path / "both.csv", "--synthetic", files / "leaky.csv", "--member-column", "split")
    assert wrong.exit_code == 2
    assert (
        "must be 1 or 0, got 'train'; --member-value names the word that members have, one of 'test', 'train'"
        in wrong.stderr
    )
    both = ("--records", tmp_path / "both.csv", *tables(files))
    assert "--records goes without --train" in run(*both).stderr


def test_no_reference_and_one_that_is_not_there(files):
    none = run(*tables(files), "--reference", "none", "--json")
    assert none.exit_code == 0, none.output
    assert json.loads(none.stdout)["set_aside"] == 0
    wrong = run(*tables(files), "--reference", files / "nowhere.csv")
    assert wrong.exit_code == 2
    assert "nowhere.csv" in wrong.stderr


def test_scores_in_json_lines(files, tmp_path):
    scores = pl.read_csv(files / "scores.csv").select("score", pl.col("member").replace_strict({1: "in", 0: "out"}))
    scores.write_ndjson(tmp_path / "scores.jsonl")
    seen = run("--scores", tmp_path / "scores.jsonl", "--member-value", "in", "--seed", 1, "--json")
    plain = run("--scores", files / "scores.csv", "--columns", "score", "--seed", 1, "--json")
    assert json.loads(seen.stdout)["advantage"] == json.loads(plain.stdout)["advantage"]
