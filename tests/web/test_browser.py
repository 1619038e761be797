"""The page as a person uses it, in a real browser against a real server."""

import re

import pytest
from web_support import Server

import whosin as wi


@pytest.fixture(scope="module")
def served(chromium, tmp_path_factory):
    """One server for all tests of this file."""
    import signal

    server = Server(tmp_path_factory.mktemp("browser") / "data", "--max-upload-mb", "0.2")
    yield server
    code, said = server.end(signal.SIGINT)
    assert code in (0, 130, -signal.SIGINT)
    assert "Traceback" not in said


@pytest.fixture
def visit(chromium, served):
    """Return a function that opens a browser of its own; errors of the page fail the test."""
    contexts, problems = [], []

    def come(come_in=True, **options):
        context = chromium.new_context(accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda message: problems.append(message.text) if "Content Security" in message.text else None
        )
        if come_in:
            page.goto(served.url)
        return page

    yield come
    for context in contexts:
        context.close()
    assert problems == []


def said(page):
    return page.inner_text("#sentence")


def until(page, changed_from):
    page.wait_for_function("old => document.getElementById('sentence').innerText !== old", arg=changed_from)
    return said(page)


def test_without_the_token_there_is_only_the_login_page(visit, served):
    page = visit(come_in=False)
    for path in ("", "audit", "static/app.js"):
        answer = page.goto(served.base + path)
        assert answer.status == 401
    page.goto(served.base + "explain")
    page.fill("#secret", "wrong")
    page.click("button")
    assert "neither the token nor the password" in page.inner_text("main")
    page.fill("#secret", served.token)
    page.click("button")
    page.wait_for_url(served.base + "explain")
    assert page.inner_text("h1") == "What does a promise mean?"


def test_the_token_leaves_the_address_and_no_script_reads_the_cookie(visit, served):
    page = visit()
    assert page.url == served.base + "explain"
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"


def test_a_link_from_elsewhere_still_leads_in(visit, served, tmp_path):
    """The browser keeps a strict cookie back on a way that began elsewhere; the login page then opens by itself."""
    opener = tmp_path / "open.html"
    opener.write_text(f'<meta http-equiv="refresh" content="0;url={served.url}">')
    page = visit(come_in=False)
    page.goto(opener.as_uri())
    page.wait_for_selector("h1:has-text('What does a promise mean?')")
    assert "token" not in page.url


def test_the_sentence_and_the_curve_follow_the_slider(visit):
    page = visit()
    before, curve = said(page), page.get_attribute("path.curve", "d")
    assert f"{100 * wi.PureDP(1.0).accuracy():.1f}"[:2] in before
    page.locator("#epsilon-slider").fill("900")
    after = until(page, before)
    epsilon = float(page.input_value("#epsilon"))
    assert epsilon > 5
    shown = float(re.search(r"([\d.]+)% of the time at most", after)[1]) / 100
    assert shown == pytest.approx(wi.PureDP(epsilon).accuracy(), abs=1e-3)
    assert page.get_attribute("path.curve", "d") != curve
    assert page.get_attribute("#epsilon-slider", "aria-valuetext") == page.input_value("#epsilon")
    before = said(page)
    page.fill("#epsilon", "150")
    assert page.inner_text("#epsilon-problem").startswith("This must be a number from 0 to 100.")
    page.fill("#epsilon", "3")
    assert not page.is_visible("#epsilon-problem")
    until(page, before)


def test_the_kind_of_promise_brings_its_own_sliders(visit):
    page = visit()
    before = said(page)
    assert not page.is_visible("#steps")
    page.check('input[value="dpsgd"]')
    assert page.is_visible("#steps")
    assert not page.is_visible("#epsilon")
    until(page, before)
    assert "Poisson" in page.inner_text("#answer")


def test_calibrate(visit, served):
    page = visit()
    page.click("nav >> text=Calibrate")
    before = said(page)
    assert before.startswith("Differential privacy with ε of at most 0.405")
    page.fill("#value", "0.4")
    assert until(page, before).startswith("This cannot be done")


def stated(page):
    """What the sentence says, as a number from 0 to 1."""
    return float(re.search(r"([\d.]+)% of the time at most", said(page))[1]) / 100


def go_away_and_back(page):
    page.click("nav >> text=Audit")
    page.wait_for_selector("h1:has-text('What does a release give away?')")
    page.go_back()
    page.wait_for_selector("#sentence")


def says(page, accuracy):
    """Wait until the sentence is about this accuracy, rounded up to a tenth of a percent."""
    page.wait_for_function(
        """wanted => {
            const found = document.getElementById("sentence").innerText.match(/([0-9.]+)% of the time at most/);
            return found && Math.abs(found[1] / 100 - wanted) <= 0.001;
        }""",
        arg=accuracy,
    )


def test_after_back_the_answer_is_that_of_the_sliders(visit):
    page = visit()
    default, curve = said(page), page.get_attribute("path.curve", "d")
    page.fill("#epsilon", "9")
    until(page, default)
    go_away_and_back(page)
    assert page.input_value("#epsilon") == "9"
    says(page, wi.PureDP(9.0).accuracy())
    assert page.get_attribute("path.curve", "d") != curve
    page.reload()
    assert page.input_value("#epsilon") == "9"
    assert stated(page) == pytest.approx(wi.PureDP(9.0).accuracy(), abs=1e-3)


def test_back_to_a_question_that_was_left_before_its_answer(visit):
    page = visit()
    leave = """() => {
        const field = document.getElementById("epsilon");
        field.value = "5";
        field.dispatchEvent(new Event("input", {bubbles: true}));
        location.href = "/audit";
    }"""
    page.evaluate(leave)
    page.wait_for_selector("h1:has-text('What does a release give away?')")
    page.go_back()
    page.wait_for_selector("#sentence")
    says(page, wi.PureDP(float(page.input_value("#epsilon"))).accuracy())
    slider = float(page.input_value("#epsilon-slider"))
    assert page.input_value("#epsilon") == "5"
    assert slider > 700


def test_after_back_a_kind_of_promise_and_a_wish_are_as_they_were(visit, served):
    page = visit()
    before = said(page)
    page.check('input[value="dpsgd"]')
    before = until(page, before)
    page.fill("#steps", "50")
    after = until(page, before)
    go_away_and_back(page)
    page.wait_for_function("old => document.getElementById('sentence').innerText === old", arg=after)
    assert page.is_checked('input[value="dpsgd"]')
    assert page.is_visible("#steps")
    assert not page.is_visible("#epsilon")
    page.goto(served.base + "calibrate")
    before = said(page)
    page.check('input[value="advantage"]')
    before = until(page, before)
    page.fill("#value", "0.3")
    after = until(page, before)
    go_away_and_back(page)
    page.wait_for_function("old => document.getElementById('sentence').innerText === old", arg=after)
    assert page.input_value("#value") == "0.3"


def test_a_link_with_values_gives_their_answer(visit, served):
    page = visit()
    page.fill("#epsilon", "1.23456789")
    page.fill("#prior", "0.25")
    says(page, wi.PureDP(1.23456789).accuracy(prior=0.25))
    link, there = page.url, said(page)
    other = visit()
    other.goto(link)
    assert said(other) == there
    assert other.input_value("#epsilon") == "1.23456789"
    assert float(other.input_value("#epsilon-slider")) == float(page.input_value("#epsilon-slider"))
    other.goto(served.base + "explain?kind=dpsgd&steps=1000000&noise_multiplier=50")
    before = said(other)
    other.fill("#noise_multiplier", "5")
    assert "of the time at most" in until(other, before)


def test_what_cannot_be_answered_leaves_no_old_answer(visit, served):
    """A sentence about other numbers must not stand beside the sliders."""
    page = visit()
    page.route("**/explain/answer*", lambda route: route.abort())
    page.fill("#epsilon", "4")
    page.wait_for_function("() => document.getElementById('sentence').innerText.startsWith('The server did not')")
    assert page.locator("path.curve").count() == 0
    page.unroute("**/explain/answer*")
    page.route("**/explain/answer*", lambda route: route.fulfill(status=422, body="<p>too long</p>"))
    page.fill("#epsilon", "5")
    page.wait_for_function("() => document.getElementById('sentence').innerText.startsWith('There is no answer')")
    page.wait_for_function("() => document.getElementById('answer').innerText === 'too long'")


def test_keyboard_alone(visit, served):
    """From the address to a new sentence without a mouse."""
    page = visit()
    before = said(page)
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.id")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        if focused == "epsilon-slider":
            break
    assert focused == "epsilon-slider"
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    until(page, before)
    page.keyboard.press("Home")
    page.wait_for_function("() => document.getElementById('epsilon').value === '0'")
    page.wait_for_function("() => document.getElementById('sentence').innerText.includes('50% of the time at most')")


def test_an_audit_from_upload_to_report_and_two_at_once(visit, served, tables, scores, tmp_path):
    one, two = visit(), visit(viewport={"width": 390, "height": 844}, color_scheme="dark")
    one.goto(served.base + "audit")
    for role in ("train", "holdout", "synthetic"):
        one.set_input_files(f"#{role}", tables[role])
    one.fill("#name", "release <b>one</b>")
    one.click("summary >> text=More settings")
    one.fill("#promised_epsilon", "1")
    one.click("#start")
    two.goto(served.base + "audit")
    two.check('input[value="scores"]')
    (tmp_path / "attack.csv").write_bytes(scores)
    two.set_input_files("#scores", tmp_path / "attack.csv")
    two.fill("#name", "attack")
    two.click("#start")
    one.wait_for_selector(".audit progress")
    two.wait_for_selector(".audit progress")
    for page in (one, two):
        page.wait_for_selector('.audit[data-state="done"]', timeout=120_000)
        verdict = page.inner_text(".audit .verdict")
        assert re.search(
            r"Leak found\s+\d+ of 100 people .* at least 0\.\d+, and at most [01]\.?\d* for", verdict, re.S
        )
        assert page.locator(".audit .box").count() == 3
    assert one.evaluate("document.activeElement.tagName") == "H2"
    assert 0 <= one.locator(".audit .verdict").bounding_box()["y"] < 600
    assert "release <b>one</b>" in one.inner_text(".audit h2")
    assert "exceeds the promise on this model" in one.inner_text(".audit")
    assert two.evaluate("document.documentElement.scrollWidth") <= 390

    with one.expect_download() as saved:
        one.click("text=Download the report")
    text = saved.value.path().read_text()
    assert "release &lt;b&gt;one&lt;/b&gt;" in text
    with one.expect_popup() as opened:
        one.click("text=Read the report")
    report = opened.value
    report.wait_for_selector("h1")
    assert report.evaluate("self.origin") == "null"
    assert report.locator("svg").count() > 3
    report.close()

    one.click("nav >> text=Compare")
    for box in one.query_selector_all('input[name="id"]'):
        box.check()
    one.wait_for_selector("#answer table")
    assert "All intervals hold together with 90% confidence" in said(one)
    compared = said(one)
    go_away_and_back(one)
    one.wait_for_function("old => document.getElementById('sentence').innerText === old", arg=compared)
    assert one.locator('input[name="id"]:checked').count() == 2

    two.goto(served.base + "audit")
    assert two.locator("#history tbody tr").count() == 2
    two.on("dialog", lambda dialog: dialog.accept())
    two.click("[aria-label='Remove attack']")
    two.wait_for_function("() => document.querySelectorAll('#history tbody tr').length === 1")


def test_a_bad_file_and_a_huge_one(visit, served, tmp_path):
    page = visit()
    page.goto(served.base + "audit")
    page.check('input[value="scores"]')
    (tmp_path / "bad.csv").write_bytes(b"%PDF-1.7 not a table")
    page.set_input_files("#scores", tmp_path / "bad.csv")
    page.click("#start")
    page.wait_for_selector("#status [role=alert]")
    assert "got a PDF file" in page.inner_text("#status")
    (tmp_path / "huge.csv").write_bytes(b"member,score\n" + b"1,0.5\n" * 50_000)
    page.set_input_files("#scores", tmp_path / "huge.csv")
    page.click("#start")
    page.wait_for_selector("#problem:not([hidden])")
    assert "huge.csv is larger than 0.2 MB" in page.inner_text("#problem")
    # the server does not rely on the page
    page.evaluate("document.getElementById('upload').dataset.mostBytes = '1e12'")
    page.click("#start")
    page.wait_for_function("() => document.getElementById('status').innerText.includes('at most 0.2 MB')")
