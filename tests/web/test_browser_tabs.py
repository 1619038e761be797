"""The further tabs, sample data, cancelling and names, in a real browser; and what readers with other senses need."""

import re
from itertools import pairwise

import pytest
from web_support import Server

TOOLS = ("protect", "population", "ledger", "deletions")
UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, button, a")].filter((each) =>
    !(each.labels && each.labels.length) && !each.getAttribute("aria-label") && !each.textContent.trim())
    .map((each) => each.outerHTML)"""
PALE = """() => {
    const light = (text) => {
        const parts = text.match(/[\\d.]+/g).slice(0, 3).map((part) => {
            const c = part / 255;
            return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const behind = (each) => {
        for (let at = each; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$|transparent/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    return [...document.querySelectorAll("p, li, label, legend, h1, h2, h3, a, button, summary, td, th, span")]
        .filter((each) => each.offsetParent && each.textContent.trim() && !each.classList.contains("unseen"))
        .filter((each) => {
            const [one, two] = [light(getComputedStyle(each).color), light(behind(each))].sort();
            return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05) < 4.5;
        }).map((each) => each.outerHTML.slice(0, 120));
}"""
LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4")].filter((each) => each.offsetParent)
    .map((each) => Number(each.tagName[1]))"""


@pytest.fixture(scope="module")
def served(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabs")
    server = Server(folder / "data", environment={"WHOSIN_LEDGER": str(folder / "ledger.sqlite")})
    yield server
    server.end()


@pytest.fixture
def page(chromium, served, request):
    context = chromium.new_context(color_scheme=getattr(request, "param", "light"))
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(served.url)
    yield page
    context.close()


def answer(page):
    page.click("#start")
    page.wait_for_selector("#status .audit, #status [role=alert]")
    return page.inner_text("#status")


def test_every_tab_answers_as_its_command_does(page, served, tmp_path):
    (tmp_path / "records.csv").write_text("a,b\n" + "".join(f"{i % 7},{i * 3 % 5}\n" for i in range(60)))
    page.goto(served.base + "tool/deletions")
    for name, value in (("epsilon", "1"), ("inclusion", "0.01"), ("threshold", "0.8")):
        page.fill(f"#{name}-1", value)
    said = answer(page)
    assert "Deletion requests covered: 8." in said
    assert "whosin deletions --epsilon 1 --inclusion 0.01 --threshold 0.8" in said
    page.fill("#epsilon-1", "-1")
    assert "epsilon must be" in answer(page)
    page.goto(served.base + "tool/ledger")
    page.check('input[value="ledger add"]')
    page.fill("#name-2", "May table")
    page.fill("#dataset-2", "patients")
    page.fill("#epsilon-2", "1")
    assert "Recorded in" in answer(page)
    page.reload()
    page.check('input[value="ledger list"]')
    assert "May table" in answer(page)
    page.goto(served.base + "tool/population")
    page.set_input_files("#records-1", tmp_path / "records.csv")
    for name, value in (("epsilon", "4"), ("clip", "2"), ("delta", "1e-5")):
        page.fill(f"#{name}-1", value)
    assert "60 records" in answer(page)
    page.goto(served.base + "tool/protect")
    page.set_input_files("#records-1", tmp_path / "records.csv")
    page.fill("#statistic-1", "mean")
    page.fill("#eta-1", "0.1")
    said = answer(page)
    assert "60% of the time" in said
    assert '"certificate"' in said


def test_sample_data_from_start_to_pdf(page, served):
    page.goto(served.base + "audit")
    page.click("text=Try it with sample data")
    page.wait_for_selector('#status .audit[data-state="done"]')
    assert "Leak found, above the tolerated 0.1" in page.inner_text("#status .verdict")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.click("summary >> text=What was given")
    page.fill("#new-name", "tried once")
    page.click("text=Rename")
    page.wait_for_selector("#status h2 >> text=tried once")
    page.wait_for_selector("#history >> text=tried once")
    with page.expect_download() as saved:
        page.click("text=As PDF")
    assert saved.value.path().read_bytes().startswith(b"%PDF")
    page.click("summary >> text=What was given")
    page.click("text=Run again with the same settings")
    assert page.input_value("#name") == "tried once"
    assert page.input_value("#tolerate") == "0.1"


def test_a_running_audit_can_be_cancelled_and_another_tab_sees_it(page, served):
    page.goto(served.base + "audit")
    page.click("text=Try it with sample data")
    page.click("#status >> text=Cancel")
    page.wait_for_selector("#status >> text=you cancelled it")
    other = page.context.new_page()
    other.goto(served.base + "audit")
    assert "interrupted" in other.inner_text("#history")


def test_tables_are_shown_before_they_are_sent(page, served, tmp_path):
    page.goto(served.base + "audit")
    (tmp_path / "train.csv").write_text("age,job\n31,cook\n")
    (tmp_path / "holdout.csv").write_text("age;town\n44;Rome\n")
    page.set_input_files("#train", tmp_path / "train.csv")
    page.set_input_files("#holdout", tmp_path / "holdout.csv")
    page.wait_for_selector("#preview .warning")
    shown = page.inner_text("#preview")
    assert "train.csv has 2 columns (age, job); first row: 31, cook" in shown
    assert "It lacks job, which train.csv has." in shown


@pytest.mark.parametrize("page", ["light", "dark"], indirect=True)
def test_everything_has_a_name_and_can_be_read(page, served):
    """Labels, contrast of text, order of headings: what a checker of accessibility looks at first."""
    for path in ("explain", "calibrate", "audit", "scores", "compare", *(f"tool/{name}" for name in TOOLS)):
        page.goto(served.base + path)
        assert page.evaluate(UNNAMED) == [], path
        assert page.evaluate(PALE) == [], path
        levels = page.evaluate(LEVELS)
        assert levels[0] == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels)), (path, levels)
        assert re.fullmatch(r".+ – whosin", page.title())
