"""Reports without the list of exposed people, of one run, of a comparison, and of several audits."""

import dataclasses
import datetime
import html
import re

import numpy as np
import pytest
from report_pages import HOSTILE, QUOTED, Page

import whosin as wi
from whosin.errors import ImplicationError
from whosin.numerics.rounding import about, at_least, at_most, clean, percent_down, percent_up
from whosin.reporting import report

DAY = datetime.date(2026, 1, 2)


def rows_of(text, caption):
    """Return the cells of the rows of the first table whose caption begins so."""
    for table in re.findall(r"<table>.*?</table>", text, re.S):
        if html.unescape(re.search(r"<caption><span>(.*?)</span>", table, re.S)[1]).startswith(caption):
            body = re.search(r"<tbody>(.*?)</tbody>", table, re.S)[1]
            rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
            return [[html.unescape(cell) for cell in re.findall(r">([^<]*)</t[hd]>", row)] for row in rows]
    raise AssertionError(caption)


# --- copies that go further -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["synthetic audit", "quiet audit", "audit of scores", "population"])
def test_who_is_exposed_is_named_only_where_that_is_asked_for(results, kind):
    full, copy = report(results[kind], date=DAY, individuals=True), report(results[kind], date=DAY)
    named = ("The 20 members" if kind != "population" else "The most exposed records",)
    assert rows_of(full, named[0])
    with pytest.raises(AssertionError):
        rows_of(copy, named[0])
    assert "left out of this copy on purpose" in copy
    assert "left out of this copy" not in full
    assert "only row numbers or the ids" in full
    assert "only row numbers or the ids" not in copy
    assert copy == report(results[kind], date=DAY, individuals=False)


def test_a_copy_without_individuals_still_counts_them(leaky):
    surely = int(np.sum(leaky.individual.simultaneous_lower[: leaky.members] > leaky.prior))
    assert surely > 0
    assert f"For {surely} of the 600 people in the data" in Page(report(leaky, date=DAY)).visible


def test_ids_from_the_data_cannot_turn_the_text(leaky):
    text = report(leaky, ids=[f"{QUOTED} {i}" for i in range(leaky.members)], date=DAY)
    assert "\u202e" not in text
    assert not Page(text).unbalanced


# --- one run ----------------------------------------------------------------------------------------------------------


def test_one_run_is_told_with_its_numbers(one_run):
    text = report(one_run, date=DAY)
    page = Page(text)
    assert one_run.epsilon_lower > 0.0
    assert f"its ε at δ = 1e-05 is at least {at_least(one_run.epsilon_lower)} (95% confidence)." in page.visible
    assert one_run.explain() in page.visible
    ways = rows_of(text, "Ways to guess")
    assert [(int(row[1]), int(row[2])) for row in ways] == [(way.right, way.guesses) for way in one_run.counts]
    claims = dict(rows_of(text, "Chance of so many right guesses"))
    assert claims["1"] == percent_up(one_run.p_value(1.0))
    assert "Promised versus measured" not in page.visible


def test_one_run_is_held_against_a_promise(one_run):
    promise = wi.ApproxDP(0.5, 1e-5)
    found = one_run.compare(promise)
    assert found.verdict == "violated"
    for text in (report(one_run, guarantee=promise, date=DAY), report(found, date=DAY)):
        page = Page(text)
        assert "held against the promise: violated." in page.visible
        rows = dict(rows_of(text, str(promise)))
        assert rows["ε promised"] == "0.5"
        assert rows["ε measured at δ = 1e-05, at least"] == at_least(found.epsilon_lower)


def test_a_run_that_refutes_nothing_says_so():
    rng = np.random.default_rng(0)
    blind = wi.audit_one_run(rng.normal(size=100), rng.random(100) < 0.5, guesses=20)
    assert blind.epsilon_lower == 0.0
    assert "This run refutes no ε" in report(blind, date=DAY)


def test_a_promise_that_one_run_cannot_test_is_refused(one_run):
    with pytest.raises(ImplicationError):
        report(one_run, guarantee=wi.MIP(0.1), date=DAY)


# --- comparisons and several audits -----------------------------------------------------------------------------------


def test_a_comparison_has_a_report_of_its_own(leaky):
    found = leaky.compare(wi.PureDP(0.1, "replace"))
    text = report(found, date=DAY)
    assert f"held against the promise: {found.verdict}." in Page(text).visible
    rows = dict(rows_of(text, "ε = 0.1 (one person replaced)"))
    assert rows["advantage measured, at least"] == at_least(found.advantage.lower)
    assert rows["advantage promised, at most"] == at_most(found.promised_advantage)
    assert "wi.PureDP(epsilon=0.1, adjacency='replace')" in Page(text).text_of("pre")


def test_several_audits_stand_side_by_side(leaky, quiet, scores):
    audits = {HOSTILE: leaky, f"{QUOTED} quiet": quiet, "scores": scores}
    text = report(audits, guarantee=wi.PureDP(0.1, "replace"), title=QUOTED, date=DAY)
    page = Page(text)
    assert not page.unbalanced
    assert not page.all("script")
    assert not page.all("img")
    rows = {row[0]: row[1:] for row in rows_of(text, "The audits side by side")}
    for name, found in audits.items():
        cells = rows[clean(name)]
        assert cells[:2] == [f"{found.members:,}", f"{found.non_members:,}"]
        limits = found.advantage
        assert cells[2:5] == [about(limits.estimate), at_least(limits.lower), at_most(limits.upper)]
        assert clean(found.explain()) in page.visible
    verdicts = {row[0]: row[-1] for row in rows_of(text, "Advantages held against")}
    assert verdicts[HOSTILE] == leaky.compare(wi.PureDP(0.1, "replace")).verdict
    assert f"all 3 hold together with at least {percent_down(0.85)} confidence" in page.visible
    assert not re.search(r"row(\u00a0|&#160;)\d", text)
    assert leaky.fingerprints["train"] in text


def test_several_quiet_audits_promise_nothing(quiet):
    visible = Page(report({"one": quiet, "two": quiet}, date=DAY)).visible
    assert "In 0 of 2 audits a leak was found." in visible
    most = at_most(quiet.advantage.upper)
    assert f"up to {most} remains possible even for the attackers that each covers" in visible


def test_an_audit_without_a_verdict_is_counted_as_none(leaky, quiet):
    bare = dataclasses.replace(quiet, problem="nothing was held out.")
    text = report({"one": leaky, "two": bare}, guarantee=wi.PureDP(9.0, "replace"), date=DAY)
    assert "In 1 of 2 audits a leak was found (one)." in Page(text).visible
    assert "No verdict is possible in 1 (two)." in Page(text).visible
    verdicts = {row[0]: row[1:] for row in rows_of(text, "The verdicts")}
    assert verdicts["one"] == ["leak", leaky.verdict.sentence]
    assert verdicts["two"] == ["no verdict", "No verdict: nothing was held out."]
    assert rows_of(text, "Advantages held against")[1][-1] == "no verdict"


def test_many_audits_have_no_joint_confidence(scores):
    visible = Page(report({f"audit {i}": scores for i in range(20)}, date=DAY)).visible
    assert "with no stated confidence" in visible
