"""The further tabs, sample data, cancelling and names, in a real browser; and what readers with other senses need."""

import re

import pytest
from web_support import Server, faults

TOOLS = ("protect", "population", "ledger", "deletions")


@pytest.fixture(scope="module")
def served(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tabs")
    server = Server(folder / "data", environment={"WHOSIN_LEDGER": str(folder / "ledger.sqlite")})
    yield server
    server.end()


@pytest.fixture
def page(chromium, served):
    context = chromium.new_context(color_scheme="light")
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
    (tmp_path / "asked.csv").write_text("who\n007\n7\n007\n")
    page.set_input_files("#requested-1", tmp_path / "asked.csv")
    page.fill("#key-1", "who")
    assert "3 rows ask for 2 different keys" in answer(page)
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
    page.check('input[value="ledger retract"]')
    page.fill("#number-5", "1")
    page.fill("#note-5", "taken down")
    said = answer(page)
    assert "Recorded in" in said
    assert "whosin ledger retract 1 --note 'taken down'" in said
    page.check('input[value="ledger same-people"]')
    page.fill("#dataset-6", "patients")
    page.set_input_files("#data-6", tmp_path / "records.csv")
    assert "is of patients" in answer(page)
    page.goto(served.base + "tool/population")
    page.set_input_files("#records-1", tmp_path / "records.csv")
    for name, value in (("epsilon", "4"), ("clip", "2"), ("delta", "1e-5")):
        page.fill(f"#{name}-1", value)
    assert "60 records" in answer(page)
    (tmp_path / "grid.csv").write_text("a,b\n" + "".join(f"{i},{j}\n" for i in (0, 3, 6) for j in (0, 2, 4)))
    page.check('input[value="population exponential"]')
    page.set_input_files("#records-3", tmp_path / "records.csv")
    page.set_input_files("#candidates-3", tmp_path / "grid.csv")
    for name, value in (("epsilon", "4"), ("clip", "8")):
        page.fill(f"#{name}-3", value)
    said = answer(page)
    assert "60 records" in said
    assert "whosin population exponential records.csv --candidates=grid.csv" in said
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


def test_files_are_shown_before_they_are_audited(page, served, tmp_path):
    page.goto(served.base + "audit")
    rows = "".join(f"{i};{18 + i % 20};{i % 7},5\n" for i in range(60))
    for role in ("train", "holdout", "synthetic"):
        (tmp_path / f"{role}.csv").write_text("row;age;height\n" + rows)
        page.set_input_files(f"#{role}", tmp_path / f"{role}.csv")
    page.wait_for_selector("#preview table")
    shown = page.inner_text("#preview")
    assert "2 of 3 columns are compared. Left out: row (a running number)." in shown
    assert "Training rows that appear among the held-out rows: 60" in shown
    assert "commas are decimal signs in 'height'" in shown
    assert page.inner_text("#status") == ""
    page.click("summary >> text=More settings")
    page.fill("#ignore", "town")
    page.click("#look")
    page.wait_for_selector("#preview [role=alert]")
    assert "“Columns to leave out”" in page.inner_text("#preview")


def tab_to(page, wanted):
    """Press Tab until what has the focus fits, and see that the focus can be seen all the way."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate("""() => {
            const at = document.activeElement;
            return [at.id, at.textContent.trim(), getComputedStyle(at).outlineStyle];
        }""")
        assert focused[2] != "none", focused
        if wanted in focused[:2]:
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_an_audit_and_a_command_by_keyboard_alone(page, served):
    """From the address to the report, and through a form, with Tab, Enter and letters."""
    page.goto(served.base + "audit")
    tab_to(page, "Try it with sample data")
    page.keyboard.press("Enter")
    page.wait_for_selector('#status .audit[data-state="done"]')
    page.wait_for_function("document.activeElement.tagName === 'H2'")
    tab_to(page, "Read the report")
    with page.expect_popup() as opened:
        page.keyboard.press("Enter")
    opened.value.wait_for_selector("h1")
    page.goto(served.base + "tool/deletions")
    for name, value in (("epsilon", "1"), ("inclusion", "0.01"), ("threshold", "0.8")):
        tab_to(page, f"{name}-1")
        page.keyboard.type(value)
    page.keyboard.press("Enter")
    page.wait_for_selector("#status .audit")
    assert "Deletion requests covered: 8." in page.inner_text("#status")


def test_the_address_of_an_audit_can_be_shared(page, served):
    """It is there as soon as the audit is: a reload, Back and a second tab show the same audit."""
    page.goto(served.base + "audit")
    page.click("text=Try it with sample data")
    page.wait_for_url(re.compile(r"/audit/[0-9a-f]{32}$"))
    page.reload()
    page.wait_for_selector('#status .audit[data-state="done"]')
    verdict, address = page.inner_text("#status .verdict"), page.url
    other = page.context.new_page()
    other.set_viewport_size({"width": 390, "height": 844})
    other.goto(address)
    assert other.inner_text("#status .verdict") == verdict
    box = other.locator("#status .verdict").bounding_box()
    assert box["y"] + box["height"] <= 844
    page.click("nav >> text=Compare")
    page.wait_for_selector("h1:has-text('Which release')")
    page.go_back()
    page.wait_for_selector("#status .verdict")
    assert page.url == address


def test_axe_finds_no_fault_with_any_tab(page, served):
    """Names, labels, contrast, headings, landmarks: on the login page, each tab, an answer, and where nothing is."""
    found = []

    def look():
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours, reduced_motion="reduce")  # colours change at once
            found.extend(faults(page))

    for path in ("explain", "calibrate", "audit", "scores", "compare", "nowhere", *(f"tool/{name}" for name in TOOLS)):
        page.goto(served.base + path)
        assert re.fullmatch(r".+ – whosin", page.title())
        look()
    page.goto(served.base + "audit")
    page.click("text=Try it with sample data")
    page.wait_for_selector("#status progress")
    look()
    page.wait_for_selector('#status .audit[data-state="done"]')
    look()
    page.goto(served.base + "tool/ledger")
    page.check('input[value="ledger list"]')
    answer(page)
    look()
    page.context.clear_cookies()
    page.goto(served.base + "audit")
    look()
    assert found == []


def test_axe_is_asked(page, served):
    page.goto(served.base + "explain")
    page.evaluate("document.querySelector('label[for=epsilon]').remove()")
    page.evaluate("document.querySelector('h1').style.color = '#eee'")
    assert {"label", "color-contrast"} <= {fault.split(" ")[1].rstrip(":") for fault in faults(page)}
