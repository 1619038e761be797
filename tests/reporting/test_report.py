"""The report: what it says, that it says it of the result, and that it is one file which needs nothing else."""

import dataclasses
import datetime
import html
import os
import re
import stat
import sys
from itertools import pairwise

import numpy as np
import pytest
from report_pages import HOSTILE, QUOTED, Page

import whosin as wi
import whosin.reporting.page as page_module
from whosin.errors import InputError, InputTypeError, MissingExtraError
from whosin.numerics.rounding import about, at_least, at_most, clean, percent, percent_down, percent_up
from whosin.reporting import report
from whosin.reporting.audit import _columns
from whosin.reporting.blocks import Report
from whosin.reporting.preview import preview_blocks

DAY = datetime.date(2026, 1, 2)
KINDS = (
    "synthetic audit", "quiet audit", "audit of scores", "guarantee", "guarantee with delta", "population", "release",
    "certificate", "one run", "comparison", "comparison of one run", "several audits",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages(results):
    named = ("synthetic audit", "quiet audit", "audit of scores", "population")
    return {name: report(result, date=DAY, individuals=name in named) for name, result in results.items()}


@pytest.fixture(scope="module")
def promised(leaky):
    """The fullest report: hostile ids and title, a promise, a command."""
    ids = [f"{QUOTED} {i}" for i in range(leaky.members)]
    return report(
        leaky,
        title=HOSTILE,
        guarantee=wi.PureDP(0.1, "replace"),
        ids=ids,
        individuals=True,
        command=f"whosin audit --train {HOSTILE}",
        date=DAY,
    )


# --- one page, well made ----------------------------------------------------------------------------------------------


def assumptions(kind, result):
    if kind == "several audits":
        return [line for found in result.values() for line in found.assumes]
    if kind.startswith("comparison"):
        return result.guarantee.assumes
    return (result.certificate if kind == "release" else result).assumes


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_is_a_well_formed_page(self, pages, kind):
        text = pages[kind]
        page = Page(text)
        assert text.startswith("<!DOCTYPE html>\n")
        assert not page.unbalanced
        assert page.all("html") == [{"lang": "en"}]
        assert page.text_of("title") == page.text_of("h1") != ""

    def test_headings_are_in_order(self, pages, kind):
        levels = [int(tag[1]) for tag, _ in Page(pages[kind]).elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))

    def test_names_are_unique_and_links_lead_somewhere(self, pages, kind):
        page = Page(pages[kind])
        names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(names) == len(set(names))
        inside = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
        inside += ["#" + name for name in re.findall(r"url\(#([^)]+)\)", pages[kind])]
        assert inside
        assert {name.removeprefix("#") for name in inside} <= set(names)
        labels = [attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes]
        assert set(labels) <= set(names)

    def test_needs_no_network_and_runs_nothing(self, pages, kind):
        page = Page(pages[kind])
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "video", "audio"}
        assert "://" not in pages[kind]
        assert "@import" not in pages[kind]
        for _, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
            assert attributes.get("href", "#").startswith("#")
        policy = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]

    def test_pictures_are_told_in_words(self, pages, kind):
        page = Page(pages[kind])
        pictures = page.all("svg")
        assert pictures
        assert len(pictures) == len(page.all("figure")) == len(page.all("figcaption"))
        for picture in pictures:
            assert picture["role"] == "img"
            assert len(picture["aria-label"]) > 40
            assert "width" not in picture

    def test_tables_have_captions_and_scopes(self, pages, kind):
        page = Page(pages[kind])
        assert len(page.all("table")) == len(page.all("caption")) > 0
        assert {cell.get("scope") for cell in page.all("th")} == {"col", "row"}

    def test_says_what_was_assumed_and_what_was_left_open(self, pages, results, kind):
        page = Page(pages[kind])
        result = results[kind]
        lines = assumptions(kind, result)
        for line in lines:
            assert clean(line[1:]) in page.visible
        titles = page.text_of("h2")
        assert all(title in titles for title in ("What was assumed", "Signature"))
        assert "not tested" in titles
        assert "How to reproduce" in titles

    def test_never_promises_too_much(self, pages, kind):
        assert not re.search(r"\b(un)?safe", Page(pages[kind]).visible, re.IGNORECASE)

    def test_names_versions_and_date(self, pages, kind):
        visible = Page(pages[kind]).visible
        assert np.__version__ in visible
        assert wi.__version__ in visible
        assert "2026-01-02" in visible


@pytest.mark.parametrize("kind", ["synthetic audit", "guarantee", "population"])
def test_is_the_same_again(pages, results, kind):
    assert report(results[kind], date=DAY, individuals=kind != "guarantee") == pages[kind]


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_colours_can_be_read_on_light_dark_and_paper(pages):
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    blocks = re.findall(r":root \{(.*?)\}", pages["guarantee"], re.S)
    themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    assert len(themes) == 3
    for theme in themes:
        for ink in ("ink", "quiet", "link"):
            for paper in ("page", "card", "answer", "warning", "good"):
                assert contrast(theme[ink], theme[paper]) >= 4.5, (ink, paper, theme)
        for line in ("line-0", "line-1", "line-2", "line-3"):
            assert contrast(theme[line], theme["page"]) >= 4.5


def test_pictures_take_their_ink_from_the_page(pages):
    for text in pages.values():
        drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.S))
        assert re.search(r'class="[^"]*line-[01]', drawn)
        assert not re.search(r'#[0-9a-f]{6}|style=|fill="', drawn, re.IGNORECASE)


# --- names from the data ----------------------------------------------------------------------------------------------


def test_names_from_the_data_cannot_break_the_page(promised):
    page = Page(promised)
    assert not page.unbalanced
    assert not page.all("script")
    assert not page.all("img")
    assert page.text_of("h1") == HOSTILE
    assert f"whosin audit --train {HOSTILE}" in page.text_of("pre")
    assert f"{HOSTILE}={clean(QUOTED)}" in page.text_of("table")
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]


def test_marks_that_turn_the_direction_are_made_visible(promised):
    assert "\u202e" in QUOTED
    assert "\u202e" not in promised
    assert "\ufffdsdrawkcab" in promised


def test_names_in_pictures_stay_text(promised, pages):
    drawn, other = (
        html.unescape("".join(re.findall(r"<text.*?</text>", text, re.S)))
        for text in (promised, pages["audit of scores"])
    )
    assert "<script>" in drawn
    assert "$b$ 漢字" in other


def test_control_characters_and_lone_surrogates_can_be_written(tmp_path, short):
    path = report(wi.PureDP(1.0), tmp_path / "a.html", title="a\x00b\ud800c", date=DAY)
    assert Page(path.read_text(encoding="utf-8")).text_of("h1") == "a\ufffdb\ufffdc"


def test_no_value_of_a_record_is_shown(leaky, tables, promised):
    shown = set(re.findall(r"\d+\.\d+", Page(promised).visible.replace(",", "")))
    incomes = {f"{value:.4f}".rstrip("0") for frame in tables for value in frame["income"]}
    assert len(incomes) > 1000
    assert not {text for text in shown if len(text) > 6} & incomes


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["synthetic audit", "quiet audit", "audit of scores"])
def test_the_verdict_comes_first(pages, results, kind):
    verdict, page = results[kind].verdict, Page(pages[kind])
    first = page.visible.split("The picture")[0]
    assert f"{verdict.title} {verdict.headline}" in first
    assert clean(verdict.sentence) in page.visible
    assert clean(results[kind].explain()) in html.unescape(pages[kind])
    assert verdict.state == ("leak" if results[kind].advantage.lower > 0 else "none found")


@pytest.mark.parametrize(
    ("tolerate", "problem", "state", "tone"),
    [
        (None, None, "leak", "bad"),
        (0.1, None, "exceeds", "bad"),
        (1.0, None, "within", "good"),
        (0.5, None, "undecided", "open"),
        (1.0, "nothing was held out. Hold rows out.", "no verdict", "bad"),
    ],
)
def test_a_state_is_a_word_and_an_icon_and_not_colour_alone(scores, tolerate, problem, state, tone):
    found = dataclasses.replace(scores, tolerate=tolerate, problem=problem)
    assert found.verdict.state == state
    text = report(found, date=DAY)
    card = re.search(r'<div class="card (\w+)">(.*?)</div>', text, re.S)
    assert card[1] == tone
    icon, words = re.search(r'<span aria-hidden="true">(.)</span> ([^<]+)</p>', card[2]).groups()
    assert (words, icon.strip() != "") == (found.verdict.title, True)


def test_no_verdict_says_nothing_comfortable(leaky, quiet):
    for found in (leaky, quiet):
        bare = dataclasses.replace(found, problem="nothing was held out. Hold rows out.", tolerate=1.0)
        visible = Page(report(bare, guarantee=wi.PureDP(9.0, "replace"), date=DAY)).visible
        assert "No verdict Nothing was held out. Hold rows out." in visible.split("The picture")[0]
        assert "they allow no verdict, neither a good nor a bad one" in visible
        for comfort in ("Within the tolerated", "within what is tolerated", "could be chance", "consistent"):
            assert comfort not in visible


def test_people_are_called_people():
    rng = np.random.default_rng(3)
    who = [f"p{i}" for i in range(100) for _ in range(2)], [f"q{i}" for i in range(100) for _ in range(2)]
    found = wi.audit(rng.normal(2, 1, 200), rng.normal(0, 1, 200), person=who)
    text = report(found, date=DAY, individuals=True)
    visible = Page(text).visible
    assert "If 0.5 of all people are members" in visible
    assert "People are named by the ids that were given" in visible
    listed = [name for row in rows_of(text, "The 20 members") for name in row[0].split(", ")]
    assert len(listed) == 20
    assert all(re.fullmatch(r"p\d+", name) for name in listed)
    assert "person=…" in visible


def test_a_rate_that_cannot_be_shown_is_not_another_one(pages, results):
    rows = {row[0]: row[1:] for row in rows_of(pages["audit of scores"], "Attacks that accuse few outsiders")}
    few, some = results["audit of scores"].tpr_at(0.001), results["audit of scores"].tpr_at(0.1)
    assert not few.measurable
    assert some.measurable
    assert rows["0.1%"] == [f"N{few.about[1:]}", "–", "–", "–"]
    assert rows["10%"][1:] == [percent(some.estimate), percent_down(some.lower), percent_up(some.upper)]
    assert rows["10%"][0].startswith(percent(some.fpr.estimate))


def test_a_gap_within_chance_is_no_leak():
    rng = np.random.default_rng(5)
    found = wi.audit(rng.normal(0.25, 1, 60), rng.normal(0, 1, 60), rng=0)
    assert found.advantage.lower == 0.0
    assert "That no leak was found does not show that there is none" in report(found, date=DAY)


def rows_of(text, caption):
    """Return the cells of the table whose caption begins so."""
    for table in re.findall(r"<table>.*?</table>", text, re.S):
        if re.search(r"<caption><span>(.*?)</span>", table, re.S)[1].startswith(caption):
            body = table.split("<tbody>")[1]
            rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
            return [
                [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows
            ]
    raise AssertionError(f"no table {caption!r}")


def test_tables_hold_the_numbers_of_the_audit(pages, leaky):
    text = pages["synthetic audit"]
    by_query = {name: limits for name, *limits in rows_of(text, "Advantage by query")}
    assert set(by_query) == set(leaky.queries)
    for name, found in leaky.queries.items():
        assert by_query[name] == [about(found.estimate), at_least(found.lower), at_most(found.upper)]
    listed = [(name, row[1:]) for row in rows_of(text, "The 20 members") for name in row[0].split(", ")]
    for (name, cells), highest in zip(listed, leaky.individual.highest(20, "member"), strict=True):
        limits = percent_down(highest["simultaneous_lower"]), percent_up(highest["simultaneous_upper"])
        assert name == f"row {highest['index']} (row {leaky.closest[highest['index']]})"
        assert cells == [percent(highest["risk"]), *limits]
    sizes = rows_of(text, "Advantage at each size")
    assert [row[0] for row in sizes] == [f"{size:,}" for size in leaky.release_size.sizes]
    assert [row[3] for row in sizes] == [at_most(found.upper) for found in leaky.release_size.advantages]
    tolerated = dict(rows_of(text, "Most rows"))
    for target, rows in tolerated.items():
        largest = leaky.release_size.largest(float(target))
        assert rows == ("none that was measured" if largest is None else f"{largest:,}")
    assert dict(rows_of(text, "Fingerprints")) == dict(leaky.fingerprints)
    numbers = {name: limits for name, *limits in rows_of(text, "The numbers")}
    smallest = "smallest advantage that so many records show in four of five audits, were its attack known"
    assert numbers[smallest][0] == at_most(leaky.smallest_visible)
    headline = [about(leaky.advantage.estimate), at_least(leaky.advantage.lower), at_most(leaky.advantage.upper)]
    assert numbers["advantage"] == next(iter(by_query.values())) == sizes[-1][1:] == headline
    drawn = re.search(r"in tenths: ([\d, ]+)\.", text)[1]
    assert drawn == ", ".join(map(str, np.histogram(leaky.individual.risk[: leaky.members], np.linspace(0, 1, 11))[0]))


def test_groups_are_told_with_their_limits(pages, promised, leaky, scores):
    rows = {name: cells for name, *cells in rows_of(promised, "Advantage of the attack inside each group")}
    for row in leaky.groups:
        found = row.advantage
        cells = rows[clean(row.name)]
        assert cells[:2] == [f"{row.members:,}", f"{row.non_members:,}"]
        assert cells[2:5] == [about(found.estimate), at_least(found.lower), at_most(found.upper)]
    empty = {row.name: row for row in scores.groups}
    lonely = next(name for name in empty if "only outside" in name)
    assert np.isnan(empty[lonely].advantage.estimate)
    cells = {name: cells for name, *cells in rows_of(pages["audit of scores"], "Advantage of the attack inside")}
    assert cells[lonely][2] == "–"


def test_ids_stand_instead_of_row_numbers(promised, leaky):
    first = leaky.individual.highest(1, "member")[0]["index"]
    assert rows_of(promised, "The 20 members")[0][0].startswith(f"{clean(QUOTED)} {first}")
    assert "Records are named by the ids that were given" in promised


def test_numpy_numbers_are_ids(pool):
    text = report(pool, ids=np.arange(100, 141), date=DAY)
    assert rows_of(text, "The most exposed")[0][0] == str(100 + pool.most_exposed)


def test_a_promise_is_held_against_the_measurement(promised, pages, leaky):
    found = leaky.compare(wi.PureDP(0.1, "replace"))
    assert found.verdict == "exceeds the promise on this model"
    page = Page(promised)
    assert "Promised versus measured" in page.text_of("h2")
    assert "held against the promise: exceeds the promise on this model." in page.visible
    assert found.text[1:] in page.visible
    rows = dict(rows_of(promised, "ε = 0.1 (one person replaced)"))
    assert rows["advantage promised, at most"] == at_most(found.promised_advantage)
    assert rows["members found by it, at least"] == percent_down(found.tpr_lower)
    for line in wi.PureDP(0.1, "replace").assumes:
        assert line[1:] in page.visible
    assert promised.count("curve line-1") > pages["synthetic audit"].count("curve line-1")
    assert "Promised versus measured" not in pages["synthetic audit"]


def test_a_shifted_holdout_is_said_aloud(tables):
    train, holdout, release = tables
    older = holdout.with_columns(age=holdout["age"] + 60)
    with pytest.warns(wi.errors.AssumptionWarning):
        found = wi.audit_synthetic(train, older, release, rng=1)
    page = Page(report(found, date=DAY))
    assert found.records_alone.sentence in page.visible.split("The picture")[0]


def test_queries_that_failed_are_named(leaky):
    broken = dataclasses.replace(leaky, failed=(("nearest <b>", "no numbers"),))
    assert "nearest <b>: no numbers" in Page(report(broken, date=DAY)).visible


def test_the_preview_stands_in_the_report(pages, leaky):
    rows = {row[0]: row[1:] for row in rows_of(pages["synthetic audit"], "The columns")}
    assert set(rows) == {clean(name) for name in leaky.columns}
    for column in leaky.preview.columns:
        assert rows[clean(column["name"])][1] == f"{column['different']:,}"
    files = {row[1]: row[2:] for row in rows_of(pages["synthetic audit"], "The files")}
    assert files == {
        "training rows": ["600", "3"], "held-out rows": ["600", "3"], "rows to be released": ["600", "3"]
    }  # fmt: skip


def test_a_preview_names_what_needs_a_look_first():
    rng = np.random.default_rng(1)
    rows = {"row": list(range(40)), "age": [None, *rng.integers(18, 90, 39).tolist()], "kind": ["a", "b"] * 20}
    found = wi.tables.look(rows, {**rows, "row": list(range(40, 80))}).to_dict()
    opening, files, notes, columns = preview_blocks(found, {"train": "a.csv"})
    assert opening.text == "2 of 3 columns are compared. Left out: row (a running number)."
    assert files.rows == [("a.csv", "training rows", "40", "3"), ("data", "held-out rows", "40", "3")]
    assert "Training rows that appear among the held-out rows: 40" in notes.lines
    assert [row[0] for row in columns.rows] == ["row", "age", "kind"]
    assert [row[3] for row in columns.rows] == ["0", "2", "0"]
    people = wi.tables.look(rows, {**rows, "row": list(range(30, 70))}, person="row").to_dict()
    assert "People of the training rows who are among the held-out rows: 10" in preview_blocks(people)[2].lines
    wide = {**found, "columns": found["columns"] * 10}
    assert "6 more are compared" in preview_blocks(wide)[-1].caption


def test_a_column_that_costs_nothing_is_zero_and_not_a_tiny_number(leaky):
    columns = (("income", 0.3), ("age", -1.2e-05), ("more", 4e-17))
    tiny = {"columns": [{"name": name, "lost": lost} for name, lost in columns], "advantage": 0.4}
    facts = {**leaky.to_dict(), "revealing_columns": {**tiny, "members": 1, "non_members": 1, "released": 1}}
    drawn = _columns(facts).blocks[1].pictures[0].svg
    assert re.findall(r"y=\"[\d.]+\">(-?[\d.e-]+)</text>", drawn)[-3:] == ["0.3", "0", "0"]


def test_a_query_of_ones_own_has_no_curve_of_sizes():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 2))
    found = wi.audit_synthetic(x[:60], x[60:], x[:60], query=lambda records, _: records[:, 0], rng=1)
    assert found.release_size is None
    assert "Not measured" in Page(report(found, date=DAY)).visible


@pytest.mark.parametrize("kind", ["guarantee", "guarantee with delta"])
def test_a_guarantee_is_told_with_its_numbers(pages, results, kind):
    promise, text = results[kind], pages[kind]
    assert promise.explain() in html.unescape(text)
    assert f"at most {percent_up(promise.accuracy())} of the time" in text
    rows = {row[0]: row for row in rows_of(text, "Guesses and beliefs")}
    low, high = promise.posterior(0.01)
    assert rows["1%"][2:] == [percent_up(promise.accuracy(0.01)), percent_down(low), percent_up(high)]
    assert dict(rows_of(text, "Members that can be found"))["0.1%"] == percent_up(promise.tpr_at(0.001))
    assert ("Belief after the output" in text) == (kind == "guarantee")


def test_a_population_is_told_with_its_numbers(pages, pool):
    text, drawn = pages["population"], pool.train_size / pool.records
    assert percent_up(pool.pmp.accuracy(drawn)) != percent_up(pool.pmp.accuracy())
    assert f"at most {percent_up(pool.pmp.accuracy(drawn))} of the time" in text
    rows = rows_of(text, "The promise, by")
    assert rows[-1][1] == at_most(pool.pmp.epsilon)
    order = np.argsort(-pool.per_record, kind="stable")
    listed = rows_of(text, "The most exposed")
    assert [row[0] for row in listed] == [f"row\u00a0{i}" for i in order[:20]]
    assert listed[0][-1] == at_most(pool.per_record.max())
    shares = dict(rows_of(text, "Parameter that a share"))
    assert float(shares["50%"]) >= np.median(pool.per_record)
    assert np.mean(pool.per_record <= float(shares["90%"])) >= 0.9


def test_a_population_with_chances_is_told_at_even_odds():
    chances = np.linspace(0.1, 0.3, 12)
    found = wi.population.gaussian(np.linspace(-1, 1, 12), epsilon=2, delta=0.01, clip=1.0, chances=chances)
    text = html.unescape(wi.report(found))
    right = percent_up(found.pmp.accuracy(0.5))
    assert "Where in and out are equally likely, somebody who knows these records" in text
    assert f"guesses right at most {right} of the time" in text
    assert "without looking it is 50%" in text


def test_a_randomised_response_is_reproduced_by_its_function():
    page = wi.report(wi.population.randomized_response(["no"] * 5 + ["yes"], epsilon=1.0))
    assert "wi.population.randomized_response(records, epsilon=1.0, …)" in html.unescape(page)


def test_a_certificate_is_told_with_its_numbers(pages, release):
    text = html.unescape(pages["release"])
    assert release.certificate.explain() in text
    for line in release.certificate.not_protected:
        assert line[1:] in text
    assert str(float(release.value)) in text
    assert str(float(release.value)) not in pages["certificate"]
    assert "TEST MODE" not in text


def test_test_mode_is_said_first(release):
    page = Page(report(dataclasses.replace(release.certificate, test_mode=True), date=DAY))
    assert "TEST MODE" in page.visible
    assert [p for p in page.all("p") if p.get("class") == "warning"]


def test_the_drawn_records_are_never_shown(release):
    drawn = np.array([1234567, 7654321])
    text = report(dataclasses.replace(release, training=drawn), date=DAY)
    assert "1234567" not in text.replace(",", "")


def test_a_large_release_is_not_printed(release):
    text = report(dataclasses.replace(release, value=np.full((30, 2), 0.625)), date=DAY)
    assert "60 numbers" in text
    assert "0.625" not in text


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "promise",
    [
        wi.PureDP(0.0), wi.PureDP(1.0, "replace"), wi.PureDP(np.inf), wi.GaussianDP(1.0), wi.DPSGD(0.8, 0.05, 40),
        wi.PMP(0.7, 0.01),
        wi.MIP(0.05, train_fraction=0.8), wi.MembershipPrivacy(2.0), wi.DifferentialIdentifiability(0.4, 3),
    ],
    ids=str,
)  # fmt: skip
def test_every_guarantee_can_be_reported(promise):
    page = Page(report(promise, date=DAY))
    assert not page.unbalanced
    assert str(promise) in page.visible


@pytest.mark.parametrize(
    ("members", "non_members"),
    [([1.0, 2.0], [0.0, 1.0]), (["a"] * 5, ["a"] * 5), (np.zeros(30), np.ones(30)), (np.arange(200.0), [0.5] * 3)],
    ids=["two", "one symbol", "apart", "lopsided"],
)
def test_small_and_odd_audits_can_be_reported(members, non_members):
    found = wi.audit(members, non_members, rng=0)
    page = Page(report(found, guarantee=wi.GaussianDP(1.0), date=DAY))
    assert not page.unbalanced
    assert found.verdict.sentence in page.visible


@pytest.mark.parametrize("prior", [1e-6, 0.999])
def test_extreme_priors(prior):
    rng = np.random.default_rng(0)
    found = wi.audit(rng.normal(1, 1, 60), rng.normal(0, 1, 60), prior=prior, rng=0)
    assert not Page(report(found, date=DAY)).unbalanced


def test_many_groups_and_queries_are_cut_with_a_word():
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(200, 40))
    labels = [f"g{i % 50:02d}" for i in range(200)]
    found = wi.audit(answers[:100], answers[100:], groups=(labels[:100], labels[100:]), rng=0)
    visible = Page(report(found, date=DAY)).visible
    assert "20 further groups with smaller estimates are not shown" in visible
    assert "further queries with smaller estimates are not shown" in visible


def test_unlimited_records_are_told_as_infinite(pool):
    values = pool.per_record.copy()
    values[3] = np.inf
    text = report(dataclasses.replace(pool, per_record=values), date=DAY, individuals=True)
    assert rows_of(text, "The most exposed")[0][-1] == "∞"


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """A report without sections, where only the file matters."""
    monkeypatch.setattr(page_module, "_REPORTS", ((object, lambda *_: Report("A title", "a test", ())),))


def test_writes_whole_files_and_returns_where(tmp_path, short):
    path = report(wi.PureDP(1.0), tmp_path / "a.html", date=DAY)
    assert path == tmp_path / "a.html"
    assert path.read_bytes() == report(wi.PureDP(1.0), date=DAY).encode()
    assert b"\r" not in path.read_bytes()
    assert os.listdir(tmp_path) == ["a.html"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_refuses_to_replace_unless_told(tmp_path, short):
    path = tmp_path / "a.html"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"a\.html' is there already; force=True"):
        report(wi.PureDP(1.0), path)
    assert path.read_text() == "mine"
    report(wi.PureDP(1.0), str(path), force=True)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_broken_link_is_there_already(tmp_path, short):
    link = tmp_path / "a.html"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is there already"):
        report(wi.PureDP(1.0), link)


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, short, monkeypatch):
    path = tmp_path / "a.html"
    (_, make), *_ = page_module._REPORTS
    monkeypatch.setattr(page_module, "_REPORTS", ((object, lambda *a: (path.write_text("theirs"), make(*a))[1]),))
    with pytest.raises(InputError, match="is there already"):
        report(wi.PureDP(1.0), path)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.html"]


def test_a_failure_leaves_nothing_behind(tmp_path, short, monkeypatch):
    path = tmp_path / "a.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(page_module.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        report(wi.PureDP(1.0), path, force=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.html"]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"path": 3}, InputTypeError, "path must be the name of a file, got 3 of type int"),
        ({"path": "."}, InputError, "got the folder"),
        ({"path": "no/such/a.html"}, InputError, "folder that does not exist: 'no/such'"),
        ({"title": 3}, InputTypeError, "title must be text, got 3"),
        ({"title": " "}, InputError, "title must be text, got ' '"),
        ({"command": b"x"}, InputTypeError, "command must be text"),
        ({"date": "today"}, InputTypeError, r"date must be a datetime\.date, got 'today'"),
        ({"guarantee": wi.PureDP(1.0)}, InputTypeError, "guarantee goes with an audit"),
        ({"guarantee": 1.0}, InputTypeError, "guarantee must be one of whosin's guarantees"),
        ({"ids": ["a"]}, InputTypeError, "ids goes with an audit or a population"),
        ({"ids": ["a"], "individuals": False}, InputError, "give one of the two"),
        ({"individuals": "no"}, InputTypeError, "individuals must be True or False, got 'no'"),
    ],
)
def test_bad_arguments_are_named(options, error, match):
    with pytest.raises(error, match=match):
        report(wi.PureDP(1.0), **options)


@pytest.mark.parametrize(
    ("ids", "error", "match"),
    [
        ("abc", InputTypeError, "ids must be a sequence"),
        (7, InputTypeError, "ids must be a sequence"),
        (["a"] * 40, InputError, "each record, 41 in all, got 40"),
        ([("ann", 3)] * 41, InputTypeError, "ids must be names or numbers, got type tuple at position 0"),
        ([None] * 41, InputTypeError, "got type NoneType"),
    ],
)
def test_bad_ids_are_named(pool, ids, error, match):
    with pytest.raises(error, match=match):
        report(pool, ids=ids)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({}, InputError, "at least one audit"),
        ({"a": wi.PureDP(1.0)}, InputTypeError, "mapping of names to audits, got 'a': PureDP"),
        ({3: None}, InputTypeError, "got 3: NoneType"),
    ],
)
def test_several_take_names_and_audits(wrong, error, match):
    with pytest.raises(error, match=match):
        report(wrong)


@pytest.mark.parametrize("wrong", [None, 3, "audit", np.zeros(1000), wi.PureDP])
def test_other_results_are_refused(wrong):
    with pytest.raises(InputTypeError, match=r"result must be an audit, a guarantee, .* got .* of type \w+") as caught:
        report(wrong)
    assert len(str(caught.value)) < 200


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"reports need Jinja2: pip install .*jinja2"):
        report(wi.PureDP(1.0))


def test_today_is_the_default_date(short):
    assert datetime.datetime.now(datetime.UTC).date().isoformat()[:8] in report(wi.PureDP(1.0))
