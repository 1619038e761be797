"""The API says what the library says."""

import asyncio
import html
import json
import re
import threading
import time

import numpy as np
import pytest
from web_support import BASE, TestClient, service, upload, wait, with_token

import whosin as wi
from whosin.auditing import Verdict
from whosin.errors import InputError
from whosin.web.answers import compare
from whosin.web.app import create_app
from whosin.web.models import AuditAnswer
from whosin.web.questions import Busy, Questions
from whosin.web.service import waited_for
from whosin.web.settings import Settings


@pytest.fixture(scope="module")
def audited(tables, measured, tmp_path_factory):
    """A server with a real audit of tables, held against a promise, and one that stands for a harmless release."""
    app = create_app(Settings(tmp_path_factory.mktemp("audited") / "data"))
    with TestClient(app, base_url=BASE) as client:
        with_token(client)
        files = {role: tables[role] for role in ("train", "holdout", "synthetic")}
        sent = upload(client, files, name="copies", seed="1", groups="job", promised_epsilon="1").json()["id"]
        assert wait(client, sent)["state"] == "done", wait(client, sent)["error"]
        other = service(client).folders.new()
        service(client).history.add(other, "fresh", "scores", {}, {})
        little = {"estimate": 0.0, "lower": 0.0, "upper": 0.05, "confidence_level": 0.95}
        service(client).history.end(other, "done", summary={**measured[0], "advantage": little})
        yield client, [sent, other]


@pytest.mark.parametrize(
    ("query", "guarantee"),
    [
        ("epsilon=2", wi.PureDP(2.0)),
        ("epsilon=2&delta=1e-5&prior=0.01", wi.ApproxDP(2.0, 1e-5)),
        ("kind=gdp&mu=0.5", wi.GaussianDP(0.5)),
        ("kind=mip&eta=0.1", wi.MIP(0.1)),
        ("kind=dpsgd&noise_multiplier=1&sample_rate=0.01&steps=100", wi.DPSGD(1.0, 0.01, 100)),
        (
            "kind=dpsgd&noise_multiplier=4&run=batches&batch_size=50&dataset_size=1000&epochs=2&sampling=shuffled"
            "&adjacency=zero_out",
            wi.DPSGD(4.0, 0.05, 40, "shuffled", "zero_out"),
        ),
        ("kind=zcdp&rho=0.2", wi.ZeroConcentratedDP(0.2)),
        ("kind=rdp&pairs=order,epsilon%0A2,0.1%0A8,0.5", wi.RenyiDP([2.0, 8.0], [0.1, 0.5])),
        ("kind=profile&pairs=0.5,1e-3%0A1,1e-6", wi.PrivacyProfile([0.5, 1.0], [1e-3, 1e-6])),
        ("kind=gdp&mu=0.5&adjacency=zero_out", wi.GaussianDP(0.5, "zero_out")),
    ],
)
def test_explain(reader, query, guarantee):
    found = reader.get(f"/api/explain?{query}").json()
    prior = found["prior"]
    assert found["guarantee"] == str(guarantee)
    assert found["accuracy"] == guarantee.accuracy(prior)
    assert found["advantage"] == guarantee.advantage
    assert found["posterior"] == list(guarantee.posterior(prior))
    assert found["tpr_at"]["0.01"] == float(guarantee.tpr_at(0.01))
    assert found["explanation"] == guarantee.explain(prior)
    assert found["assumes"] == list(guarantee.assumes)


@pytest.mark.parametrize(
    "query",
    [
        *(
            "epsilon=-1",
            "epsilon=nan",
            "epsilon=inf",
            "epsilon=x",
            "prior=0",
            "prior=1",
            "delta=1",
            "kind=x",
            "unheard=1",
        ),
        "steps=0",
        "steps=1.5",
        "steps=1000001",
        "noise_multiplier=0",
        "noise_multiplier=0.01",
        "sample_rate=0",
        "eta=0.6",
    ],
)
def test_explain_refuses(reader, query):
    answer = reader.get(f"/api/explain?{query}")
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert query.partition("=")[0] in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "read", "limit"),
    [
        ("target=accuracy&value=0.6", lambda g: g.accuracy(), 0.6),
        ("target=advantage&value=0.1&delta=1e-6", lambda g: g.advantage, 0.1),
        ("target=posterior&value=0.2&prior=0.1", lambda g: g.posterior(0.1)[1], 0.2),
        ("target=tpr&value=0.05&fpr=0.01", lambda g: float(g.tpr_at(0.01)), 0.05),
        ("find=dpsgd&target=advantage&value=0.1&steps=100", lambda g: g.advantage, 0.1),
        ("find=mip&target=accuracy&value=0.6", lambda g: g.accuracy(), 0.6),
        (
            "find=dpsgd&target=advantage&value=0.2&run=batches&batch_size=50&dataset_size=1000&epochs=2"
            "&sampling=partition&adjacency=zero_out",
            lambda g: g.advantage if (g.sampling, g.steps, g.sample_rate) == ("partition", 40, 0.05) else 1.0,
            0.2,
        ),
    ],
)
def test_calibrate_keeps_the_wish(reader, query, read, limit):
    found = reader.get(f"/api/calibrate?{query}").json()["meaning"]
    guarantee = getattr(wi, found["kind"])(**found["parameters"])
    assert 0.9 * limit < read(guarantee) <= limit


def test_calibrate_what_accountants_state(reader):
    found = reader.get("/api/calibrate?find=zcdp&target=advantage&value=0.1").json()
    assert found["meaning"]["parameters"]["rho"] == wi.calibrate.zcdp(advantage=0.1).rho
    assert found["sentence"].startswith("Zero-concentrated differential privacy with ρ of at most 0.0200")
    found = reader.get("/api/calibrate?find=rdp&order=4&target=tpr&value=0.02&fpr=0.01").json()
    assert found["meaning"]["parameters"]["epsilons"] == list(wi.calibrate.rdp(4.0, tpr_at=(0.02, 0.01)).epsilons)
    assert reader.get("/api/calibrate?find=zcdp&target=posterior").status_code == 422


def test_calibrate_a_sampling_rate(reader):
    found = reader.get("/api/calibrate?find=sampling_rate&target=posterior&value=0.5&epsilon=1").json()
    assert found["sampling_rate"] == wi.calibrate.sampling_rate(1.0, posterior=0.5)
    assert found["meaning"] is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("target=accuracy&value=0.4", "accuracy=0.4 cannot be reached"),
        ("find=mip&target=posterior", "target must be one of accuracy, advantage, tpr for mip"),
        ("find=dpsgd&target=posterior", "target must be one of accuracy, advantage, tpr for dpsgd"),
        ("find=sampling_rate&target=accuracy", "target must be one of posterior for sampling_rate"),
        ("find=dpsgd&target=accuracy&value=0.5", "accuracy=0.5 cannot be reached by any finite noise"),
    ],
)
def test_calibrate_refuses(reader, query, why):
    """A wish that cannot be fulfilled is an error of the API and an answer of the page, in the same words."""
    answer = reader.get(f"/api/calibrate?{query}")
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert answer.json()["error"].startswith(why)
    page = reader.get(f"/calibrate/answer?{query}")
    assert page.status_code == 200
    assert f"This cannot be done: {answer.json()['error']}." in html.unescape(page.text)


def test_a_wish_outside_its_range(reader):
    """What is no wish at all is an error of both, in the same words."""
    answer, page = reader.get("/api/calibrate?value=2"), reader.get("/calibrate/answer?value=2")
    assert (answer.status_code, page.status_code) == (422, 422)
    assert answer.json() == {"error": "value must be at most 1, got '2'"}
    assert answer.json()["error"] in html.unescape(page.text)
    assert "This cannot be done" not in page.text


def test_printed_parameters_are_on_the_safe_side(reader):
    """What the sentence says, read back and tried, keeps the wish too."""
    for value in np.linspace(0.51, 0.95, 12):
        sentence = reader.get(f"/api/calibrate?target=accuracy&value={value}").json()["sentence"]
        printed = float(re.search(r"ε of at most ([\d.]+)", sentence)[1])
        assert wi.PureDP(printed).accuracy() <= value
    sentence = reader.get("/api/calibrate?find=dpsgd&target=advantage&value=0.1&steps=100").json()["sentence"]
    noise = float(re.search(r"at least ([\d.]+)", sentence)[1])
    assert wi.DPSGD(noise, 0.01, 100).advantage <= 0.1


def test_an_audit_is_that_of_the_library(audited, tables):
    client, (key, _) = audited
    read = [wi.tables.read_table(tables[role]) for role in ("train", "holdout", "synthetic")]
    expected = wi.audit_synthetic(*read, groups=["job"], rng=1)
    found = client.get(f"/api/audits/{key}").json()
    assert found["progress"] == 1.0
    for name in ("estimate", "lower", "upper", "confidence_level"):
        assert found["summary"]["advantage"][name] == getattr(expected.advantage, name)
    assert next(iter(found["summary"])) == "verdict"
    assert found["summary"]["verdict"] == expected.verdict.to_dict()
    assert found["summary"]["explanation"] == expected.explain()
    assert found["summary"]["covered"] == expected.covered
    assert found["summary"]["comparison"]["verdict"] == expected.compare(wi.PureDP(1.0)).verdict
    assert found["options"]["seed"] == 1
    details = client.get(f"/api/audits/{key}/details").json()
    assert details["advantage"] == expected.to_dict()["advantage"]
    assert details["groups"]


def test_the_page_and_the_report_state_the_same_verdict(audited):
    client, (key, _) = audited
    verdict = client.get(f"/api/audits/{key}").json()["summary"]["verdict"]
    for path in (f"/audit/{key}", f"/api/audits/{key}/report"):
        text = client.get(path).text
        card = html.unescape(re.search(r'<div class="card bad">(.*?)</div>', text, re.S)[1])
        assert verdict["headline"] in card
        assert verdict["title"] in card


def test_a_rate_that_so_few_outsiders_cannot_show(audited):
    client, (key, _) = audited
    found = client.get(f"/api/audits/{key}").json()["summary"]["tpr_at"]["0.001"]
    assert (found["measurable"], found["estimate"], found["fpr"]["estimate"]) == (False, None, None)
    assert found["about"].startswith("not measurable with ")
    assert f"N{found['about'][1:]}" in client.get(f"/audit/{key}").text


def test_the_summary_names_no_record(audited):
    client, keys = audited
    for key in keys:
        summary = client.get(f"/api/audits/{key}").json()["summary"]
        assert set(summary["individual"]) == {"histogram", "cells", "confidence_level"}
        assert '"index"' not in json.dumps(summary)


def test_the_report_comes_under_a_policy_of_its_own(audited):
    client, (key, _) = audited
    saved, shown = client.get(f"/api/audits/{key}/report"), client.get(f"/audit/{key}/report")
    assert saved.text == shown.text
    for answer in (saved, shown):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'none'" in policy
        assert policy.endswith("sandbox")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert saved.headers["content-disposition"] == f'attachment; filename="whosin-audit-{key[:8]}.html"'
    assert "content-disposition" not in shown.headers
    assert "whosin audit --train train.csv --holdout holdout.csv --synthetic synthetic.csv --group job" in saved.text
    assert "--seed 1" in saved.text


def test_audits_are_listed_newest_first(audited):
    client, keys = audited
    assert [audit["id"] for audit in client.get("/api/audits").json()["audits"]] == keys[::-1]


def test_compare(audited):
    client, keys = audited
    found = client.get("/api/compare", params={"id": keys}).json()
    assert [audit["id"] for audit in found["audits"]] == keys
    assert found["confidence_level"] == pytest.approx(0.9)
    assert found["statements"][0].startswith("“copies” gives away more than “fresh”")
    assert "for the attackers that are covered there" in found["statements"][0]
    page = client.get("/compare", params={"id": keys}).text
    assert "gives away more" in page
    assert page.count("<svg") == 2


def test_compare_says_nothing_that_is_not_shown(measured):
    """Two audits differ only where their intervals do not meet, at the confidence of both together."""

    def audit(name, estimate, lower, upper):
        summary = {
            **measured[0],
            "advantage": {"estimate": estimate, "lower": lower, "upper": upper, "confidence_level": 0.95},
        }
        known = {"id": name * 32, "name": name, "kind": "scores", "state": "done", "progress": 1, "error": None}
        known |= {"created": 0, "started": 0, "finished": 0, "options": {}, "files": {}, "has_report": True}
        return AuditAnswer.model_validate({**known, "summary": summary})

    meet = compare([audit("a", 0.5, 0.3, 0.7), audit("b", 0.2, 0.0, 0.3)])
    assert "No difference is shown" in meet.statements[0]
    apart = compare([audit("b", 0.2, 0.0, 0.29), audit("a", 0.5, 0.3, 0.7), audit("c", 0.9, 0.8, 1.0)])
    assert apart.confidence_level == pytest.approx(0.85)
    assert [line[:25] for line in apart.statements[:3]] == [
        "“c” gives away more than ",
        "“c” gives away more than ",
        "“a” gives away more than ",
    ]


def test_an_audit_without_a_verdict_is_compared_with_nothing(audited, measured):
    client, keys = audited
    held = service(client)
    bare = held.folders.new()
    held.history.add(bare, "equal tables", "scores", {}, {})
    verdict = Verdict("no verdict", "No verdict", "Nothing was held out.").to_dict()
    held.history.end(bare, "done", summary={**measured[0], "verdict": verdict})
    try:
        statements = client.get("/api/compare", params={"id": [keys[0], bare]}).json()["statements"]
        assert "“equal tables” allows no verdict, and was left out." in statements
        assert not [line for line in statements if "gives away more" in line or "No difference" in line]
        assert "No verdict" in client.get("/audit").text
    finally:
        held.remove(bare)


@pytest.mark.parametrize("ids", [[], ["x"], ["a" * 32, "b" * 32], ["../../etc", "x"], ["x"] * 7])
def test_compare_refuses(reader, ids):
    answer = reader.get("/api/compare", params={"id": ids})
    assert answer.status_code in (404, 422)
    assert list(answer.json()) == ["error"]
    assert reader.get("/compare", params={"id": ids}).status_code in (200, 404)


@pytest.mark.parametrize("key", ["x", "%2e%2e%2fhistory.sqlite", "a" * 32, "A" * 32, "' OR 1=1 --"])
def test_unknown_audits(reader, key):
    for path in (f"/api/audits/{key}", f"/api/audits/{key}/report", f"/api/audits/{key}/details", f"/audit/{key}"):
        assert reader.get(path).status_code == 404
    assert reader.delete(f"/api/audits/{key}").status_code in (404, 405)


def test_errors_are_json_whatever_the_path(reader):
    for answer in (reader.get("/api/nothing"), reader.put("/api/audits"), reader.get("/api/audits/x/y/z")):
        assert answer.status_code in (404, 405)
        assert list(answer.json()) == ["error"]


def test_a_busy_server_says_so(start, monkeypatch):
    client = with_token(start())
    monkeypatch.setattr("whosin.web.questions.PATIENCE", 0.05)
    questions = service(client).questions
    with questions.place(), questions.place():
        answer = client.get("/api/explain")
        assert answer.status_code == 429
        assert "busy" in answer.json()["error"]
    assert client.get("/api/explain").status_code == 200


def test_heavy_questions_have_places_of_their_own(start, monkeypatch):
    client = with_token(start())
    monkeypatch.setattr("whosin.web.questions.PATIENCE", 0.05)
    questions = service(client).questions
    with questions.place(apart=True), questions.place(apart=True):
        assert client.get("/api/explain").status_code == 200
        assert client.get("/api/explain?kind=dpsgd").status_code == 429


class _Gone:
    """Somebody who asked and went away."""

    async def is_disconnected(self):
        return True


def test_a_helper_is_ended_when_whoever_asked_has_gone():
    questions = Questions(1, 120.0, 4_000_000_000)
    try:
        began = time.monotonic()
        with pytest.raises(InputError):
            asyncio.run(waited_for(_Gone(), lambda gone: questions.answer(time.sleep, 100, apart=True, gone=gone)))
        assert time.monotonic() - began < 60
        assert questions.answer(len, "abc", apart=True) == 3
    finally:
        questions.close()


def test_whoever_has_gone_gives_up_the_place_in_the_queue():
    questions, gone = Questions(1, 120.0, 4_000_000_000), threading.Event()
    gone.set()
    began = time.monotonic()
    with questions.place(apart=True), pytest.raises(Busy):
        questions.answer(len, "abc", apart=True, gone=gone)
    assert time.monotonic() - began < 5
    questions.close()


def test_a_closed_desk_starts_no_helper():
    questions = Questions(1, 120.0, 4_000_000_000)
    questions.close()
    with pytest.raises(InputError, match="the server is ending"):
        questions.answer(len, "abc", apart=True)
    assert questions._helpers == []
