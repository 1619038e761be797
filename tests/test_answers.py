"""Results in a notebook and as data frames."""

import numpy as np
import pytest

import whosin as wi
from whosin.answers import card
from whosin.errors import InputError


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "<b>"], 100), rng.choice(["a", "<b>"], 100)
    release = rng.normal(size=(120, 2))
    return wi.audit_synthetic(release[:100], rng.normal(size=(100, 2)), release, groups=labels, rng=0)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_tables_are_data_frames(found, kind):
    for table, rows, first in (
        (found.groups, 2, "group"),
        (found.individual, 200, "index"),
        (found.release_size, len(found.release_size.sizes), "rows"),
        (found.queries, len(found.queries), "query"),
        (found.revealing_columns, 2, "name"),
    ):
        frame = table.to_frame(kind)
        assert type(frame).__module__.partition(".")[0] == kind
        assert frame.shape[0] == rows
        assert frame.columns[0] == first
        shown = table._repr_html_()
        assert shown.count("<tr>") == 1 + min(rows, 20)
        assert "<b>" not in shown
    assert found.groups.to_frame()["upper"].to_list() == [row.advantage.upper for row in found.groups]
    with pytest.raises(InputError, match="kind must be"):
        found.groups.to_frame("excel")


def test_a_result_is_one_good_line(found):
    for result in (found, found.release_size, found.individual, found.advantage, found.verdict):
        assert "\n" not in str(result)
    assert repr(found).startswith("Leak found: advantage ")
    assert len(repr(found)) < 250
    assert "surely above the prior" in repr(found.individual)


def test_the_card_has_the_verdict_and_a_colour(found):
    shown = found._repr_html_()
    assert found.verdict.headline in shown
    assert "#b3361e" in shown
    assert shown.count("<li>") == len(found.assumes)
    assert "&lt;script" in card("<script>", "<script>", {"<script>": ["<script>"]})
