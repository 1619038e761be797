"""The pages: escaped, labelled, without anything inline that the policy forbids, and right about the numbers."""

import re
import threading
from html.parser import HTMLParser

import pytest
from web_support import service, upload, wait, with_token

import whosin as wi
from whosin.errors import InputError
from whosin.web.models import CalibrateQuery, ExplainQuery
from whosin.web.sliders import CALIBRATE, EXPLAIN, filled
from whosin.web.tools import Command, Field, run_command

CSV = b"member,score\n1,0.5\n0,0.25\n"
PAGES = [
    "/explain",
    "/calibrate",
    "/audit",
    "/compare",
    "/explain?kind=mip",
    "/calibrate?find=sampling_rate&target=posterior",
    "/calibrate?find=zcdp&target=advantage",
    "/calibrate?find=rdp&target=tpr&order=4",
]
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inside, self.inline = [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else None

    def handle_data(self, data):
        if self.inside and data.strip():
            self.inline.append(data)

    def handle_endtag(self, tag):
        self.inside = None


@pytest.mark.parametrize("path", PAGES)
def test_nothing_inline_and_nothing_from_elsewhere(reader, path):
    page = Elements(reader.get(path).text)
    assert page.inline == []
    for tag, attributes in page.found:
        assert "style" not in attributes, (tag, attributes)
        assert not [name for name in attributes if name.startswith(("on", "hx-on"))]
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            assert attributes.get(name, "/").startswith(("/", "#")), (tag, attributes)
            assert not attributes.get(name, "/").startswith("//")


@pytest.mark.parametrize("path", PAGES)
def test_every_field_has_a_name_for_all_readers(reader, path):
    page = Elements(reader.get(path).text)
    labelled = {attributes.get("for") for tag, attributes in page.found if tag == "label"}
    for tag, attributes in page.found:
        if tag in ("input", "select") and attributes.get("type") not in ("radio", "checkbox"):
            assert attributes.get("id") in labelled or attributes.get("aria-label"), attributes
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in page.found].count("h1") == 1
    assert dict(page.found)["html"]["lang"] == "en"
    assert any(attributes.get("aria-current") == "page" for _, attributes in page.found)
    if path != "/compare":
        assert any(attributes.get("aria-live") == "polite" for _, attributes in page.found)


def test_the_answer_follows_the_question(reader):
    for epsilon in (0.5, 2.0, 8.0):
        page = reader.get(f"/explain/answer?epsilon={epsilon}").text
        shown = re.search(r"data ([\d.]+)% of the time at most", page)[1]
        true = 100 * wi.PureDP(epsilon).accuracy()
        assert true <= float(shown) + 1e-9
        assert float(shown) < true + 0.11
        assert page.count("<svg") == 1
    assert "hx-swap-oob" in page


def test_wrong_values_are_said_in_the_page(reader):
    answer = reader.get("/explain/answer?epsilon=-3", headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert "<html" not in answer.text
    assert "<html" in reader.get("/explain?epsilon=-3").text


@pytest.mark.parametrize(("sliders", "query"), [(EXPLAIN, ExplainQuery), (CALIBRATE, CalibrateQuery)])
def test_what_can_be_slid_or_typed_can_be_computed(sliders, query):
    """Both ends of every slider, and of what can be typed, pass the model that guards the computation."""
    for members in filled(sliders, query()).values():
        for slider in members:
            ends = {slider["low"], slider["high"], float(slider["least"]), float(slider["most"])}
            for value in ends:
                query.model_validate({slider["name"]: int(value) if slider["whole"] else value})


def test_everything_that_people_send_is_escaped(start, quick):
    client = with_token(start(worker=quick))
    sent = client.post(
        "/api/audits", files={"scores": (EVIL + ".csv", CSV)}, data={"name": EVIL, "columns": EVIL, "groups": EVIL}
    )
    key = sent.json()["id"]
    wait(client, key)
    other = upload(client, {"scores": CSV}, name="“" + EVIL).json()["id"]
    wait(client, other)
    for path in (
        "/audit",
        f"/audit/{key}",
        f"/audit/{key}/status",
        f"/compare?id={key}&id={other}",
        f"/compare/answer?id={key}&id={other}",
    ):
        text = client.get(path).text
        page = Elements(text)
        assert "&lt;script&gt;" in text
        assert page.inline == []
        assert not [attributes for tag, attributes in page.found if tag == "img" or "onerror" in attributes]


def test_errors_of_a_job_are_escaped(start):
    import sys

    code = f"import json, sys; open(sys.argv[1] + '/outcome.json', 'w').write(json.dumps({{'error': {EVIL!r}}}))"
    client = with_token(start(worker=(sys.executable, "-c", code)))
    key = upload(client, {"scores": CSV}).json()["id"]
    assert wait(client, key)["error"] == EVIL
    page = client.get(f"/audit/{key}").text
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_failed_audit_names_what_was_wrong_and_no_path(start, request_of_scores, tmp_path):
    """The worker's own words for bad data: escaped names, no folder of ours."""
    from whosin.errors import InputError
    from whosin.web.measure import measure

    (tmp_path / "scores.csv").write_bytes(b"member,<b>x</b>\nmaybe,1\n1,2\n")
    with pytest.raises(InputError) as caught:
        measure(tmp_path, request_of_scores[1], print)
    assert str(tmp_path) not in str(caught.value)
    assert "'maybe'" in str(caught.value)


def test_removing_from_the_page(start, quick):
    client = start(worker=quick)
    client.get(f"/?token={service(client).access.token}")
    client.headers["X-CSRF-Token"] = service(client).access.csrf
    key = upload(client, {"scores": CSV}, path="/audit", name="gone soon").text
    key = re.search(r"audit-([0-9a-f]{32})", key)[1]
    assert "gone soon" in client.get("/audit/history").text
    assert "No audit yet" in client.delete(f"/audit/{key}").text


def test_what_is_typed_again_leaves_defaults_out(tmp_path):
    """The line under an answer names what was chosen, and nothing that would have been so anyway."""
    fields = (Field("epsilon", "ε", required=True), Field("skip-lines", "Lines", default="0"))
    command = Command(("deletions",), "", (*fields, Field("inclusion", "q"), Field("threshold", "p")))
    chosen = {"epsilon": "1", "inclusion": "0.01", "threshold": "0.8", "skip-lines": "0"}
    typed, printed = run_command(command, chosen, {}, tmp_path, 60.0, threading.Event())
    assert typed == "whosin deletions --epsilon 1 --inclusion 0.01 --threshold 0.8"
    assert "Deletion requests covered: 8." in " ".join(printed.split())
    with pytest.raises(InputError, match="ε must be given"):
        run_command(command, {}, {}, tmp_path, 60.0, threading.Event())


def test_a_value_without_a_name_is_no_option(tmp_path):
    """It follows a double dash, so that nobody writes another ledger than the server's."""
    command = Command(("ledger", "retract"), "", (Field("number", "Number", positional=True), Field("note", "Note")))
    given = {"number": "--ledger=mine.db", "note": "x"}
    with pytest.raises(InputError, match=r"^NUMBER must be a whole number, got '--ledger=mine.db'"):
        run_command(command, given, {}, tmp_path, 60.0, threading.Event())
