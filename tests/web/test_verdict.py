"""The verdict on the page and in its API: first, the same everywhere, and never a comfortable one without a holdout."""

import io
import json

import numpy as np
import polars as pl
import pytest
from web_support import office, people, upload, with_token

from whosin.reporting.blocks import Card
from whosin.web import views
from whosin.web.measure import measure
from whosin.web.models import AuditOptions

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


def test_the_seed_is_that_of_the_data_unless_one_is_given(start, quick):
    client = with_token(start(worker=quick))
    table = io.BytesIO()
    pl.DataFrame({"score": [0.1, 0.2], "member": [1, 0]}).write_csv(table)
    key = upload(client, {"scores": table.getvalue()}, tolerate="0.2", person="").json()["id"]
    options = office(client).audit(key).options
    assert (options.seed, options.tolerate, options.person) == (None, 0.2, None)


def test_the_form_asks_for_both(reader):
    text = reader.get("/audit").text
    assert 'name="tolerate"' in text
    assert 'name="person"' in text
