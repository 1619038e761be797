"""The verdict on the page and in its API: first, the same everywhere, and never a comfortable one without a holdout."""

import io
import json
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from web_support import people, service, upload, wait, with_token

from whosin.errors import InputError
from whosin.reporting.blocks import Card
from whosin.web import views
from whosin.web.measure import measure
from whosin.web.models import AuditOptions
from whosin.web.worker import STAGES, stage_of, with_labels

LIMITS = {"rows": 10_000, "columns": 50, "memory_bytes": 4_000_000_000}


def request(folder, tables, **options):
    """Write the tables, and return the request of an audit of them."""
    files = {}
    for role, table in tables.items():
        table.write_csv(folder / f"{role}.csv")
        files[role] = {"name": f"{role}.csv", "bytes": 1, "type": "csv"}
    kind = "scores" if "scores" in tables else "tables"
    known = AuditOptions(**options).model_dump()
    return {"kind": kind, "name": "a test", "options": known, "files": files, **LIMITS}


def test_equal_tables_allow_no_verdict(tmp_path):
    train = people(1, 200)
    tables = {"train": train, "holdout": train, "synthetic": people(2, 200)}
    asked = request(tmp_path, tables, tolerate=1.0, promised_epsilon=9.0)
    summary, details, report = measure(tmp_path, asked, lambda share: None)
    assert summary["verdict"]["state"] == details["verdict"]["state"] == "no verdict"
    assert summary["comparison"] is None
    first, *others = views.of_summary(summary)
    assert isinstance(first, Card)
    assert (first.state, first.headline) == ("no verdict", summary["verdict"]["headline"])
    assert "No verdict" in report.split("<nav")[0]
    for comfort in ("Within the tolerated", "could be chance", "consistent"):
        assert comfort not in json.dumps([getattr(block, "text", "") for block in others])
        assert comfort not in report


@pytest.mark.parametrize(("tolerate", "state"), [(None, "leak"), (0.1, "exceeds"), (1.0, "within"), (0.6, "undecided")])
def test_people_and_a_tolerance(tmp_path, tolerate, state):
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "score": rng.normal(size=400) + np.tile([1.5, 0.0], 200),
            "member": [1, 0] * 200,
            "who": [f"p{i % 200}" for i in range(400)],
        }
    )
    summary, _, report = measure(
        tmp_path, request(tmp_path, {"scores": table}, person="who", tolerate=tolerate), lambda share: None
    )
    assert (summary["members"], summary["non_members"], summary["unit"]) == (100, 100, "people")
    assert summary["verdict"]["state"] == state
    assert summary["verdict"]["tolerate"] == tolerate
    assert "--person who" in report
    assert (f"--tolerate {tolerate}" in report) == (tolerate is not None)


def test_without_held_out_rows_the_three_ways_are_told(client):
    answer = upload(client, {"train": b"a,b\n1,2\n", "synthetic": b"a,b\n1,2\n"})
    assert answer.status_code == 422
    for words in ("No verdict without held-out rows", "Keep some rows back", "on random halves", "Count the training"):
        assert words in answer.json()["error"]


@pytest.mark.parametrize("role", ["train", "holdout", "scores"])
def test_an_audit_of_one_row_is_not_done(client, role):
    """It ends, and its state says that there is no verdict, in the API and in the history."""
    tables = {name: people(seed, 1 if name == role else 60) for seed, name in enumerate(("train", "holdout"))}
    files = {name: table.write_csv().encode() for name, table in (*tables.items(), ("synthetic", people(7, 60)))}
    key = upload(client, {"scores": b"member,score\n1,0.5\n0,0.2\n"} if role == "scores" else files).json()["id"]
    ended = wait(client, key)
    assert ended["state"] == ended["summary"]["verdict"]["state"] == "no verdict"
    assert "are too few" in ended["summary"]["verdict"]["sentence"]
    assert "done" not in client.get("/audit/history").text
    assert "No verdict" in client.get(f"/audit/{key}").text
    assert client.get(f"/api/audits/{key}/report").status_code == 200


TRAIN, OTHERS, RELEASE = people(1, 60), people(2, 60), people(3, 60)
REFUSED = {
    "other names": ({"train": TRAIN.rename({"age": "years"})}, {}, "“Columns to use” names those to use"),
    "unknown column": ({}, {"columns": ["town"]}, "no column 'town'"),
    "unknown to leave out": ({}, {"ignore": ["town"]}, "“Columns to leave out” must name columns"),
    "all left out": ({}, {"ignore": ["age", "income", "job"]}, "“Columns to compare all the same” names those"),
    "unknown to keep": ({}, {"keep": ["town"]}, "“Columns to compare all the same” must name columns"),
    "unknown labels": ({}, {"categories": ["town"]}, "no column 'town'; it has"),
    "unknown group": ({}, {"groups": ["town"]}, "no column 'town'"),
    "unknown person": ({}, {"person": "town"}, "“Person column” must be a column"),
    "two kinds": ({"holdout": OTHERS.with_columns(age=pl.lit("x"))}, {}, "must hold one kind of cells"),
    "no rows": ({"train": TRAIN.head(0)}, {}, "has names but no rows"),
    "one side": ({"scores": pl.DataFrame({"member": [1, 1], "score": [0.1, 0.2]})}, {}, "got members alone"),
    "other side": ({"scores": pl.DataFrame({"member": [0, 0], "score": [0.1, 0.2]})}, {}, "got others alone"),
    "scores to leave out": (
        {"scores": pl.DataFrame({"member": [1, 0] * 20, "score": range(40)})}, {"ignore": ["x"]},
        "“Columns to leave out” must be left out with scores: “Columns to use” names those to use",
    ),
    "no truth": ({"scores": pl.DataFrame({"score": [0.1, 0.2]})}, {}, "must be a column of"),
    "strange truth": ({"scores": pl.DataFrame({"member": ["in", "x"], "score": [1, 2]})}, {}, "“Word for members”"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_failed_audit_speaks_the_words_of_the_form(tmp_path, case):
    """Whatever is wrong, no argument of the library and no option of the command line is named."""
    tables, options, words = REFUSED[case]
    given = tables if "scores" in tables else {"train": TRAIN, "holdout": OTHERS, "synthetic": RELEASE, **tables}
    with pytest.raises(InputError) as caught:
        measure(tmp_path, request(tmp_path, given, **options), lambda share: None)
    shown = with_labels(str(caught.value))
    assert words in shown
    assert not re.search(r"\b\w+=(?!\d)|--\w+|\[\.\.\.\]|shape \(", shown)


def test_progress_goes_on_in_small_steps(tmp_path):
    """From reading to the report no step is larger than a tenth, so that the bar stands still nowhere for long."""
    tables = {"train": TRAIN, "holdout": OTHERS, "synthetic": RELEASE}
    shares = [0.0]
    measure(tmp_path, request(tmp_path, tables, groups=["job"]), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert max(later - earlier for earlier, later in pairwise(shares)) <= 0.1
    assert {stage_of(share) for share in shares} == {name for _, name in STAGES}


def test_the_seed_is_that_of_the_data_unless_one_is_given(start, quick):
    client = with_token(start(worker=quick))
    table = io.BytesIO()
    pl.DataFrame({"score": [0.1, 0.2], "member": [1, 0]}).write_csv(table)
    key = upload(client, {"scores": table.getvalue()}, tolerate="0.2", person="").json()["id"]
    options = service(client).audit(key).options
    assert (options.seed, options.tolerate, options.person) == (None, 0.2, None)


def test_the_form_asks_for_both(reader):
    text = reader.get("/audit").text
    assert 'name="tolerate"' in text
    assert 'name="person"' in text
