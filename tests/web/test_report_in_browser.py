"""The report in a real browser: the verdict on the first screen, letters that can be read, four pages on paper."""

import re
import shutil

import pytest

import whosin as wi


@pytest.fixture(scope="module")
def reported(chromium, tmp_path_factory):
    """The report of a leaking release, as a file."""
    import polars as pl
    from web_support import people

    train, holdout = people(1, 300), people(2, 300)
    found = wi.audit_synthetic(train, holdout, pl.concat([train.head(150), people(3, 150)]), tolerate=0.1)
    folder = tmp_path_factory.mktemp("report")
    files = {"train": "patients.csv", "holdout": "others.csv", "synthetic": "release.csv"}
    wi.report(found, folder / "a.html", files=files, guarantee=wi.PureDP(1.0))
    return folder / "a.html", found


@pytest.fixture
def look(chromium, reported):
    """Return a function that opens the report in a window of this size."""
    contexts = []

    def open_in(width, height, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.goto(reported[0].as_uri())
        return page

    yield open_in
    for context in contexts:
        context.close()


def bottom(page, selector):
    box = page.locator(selector).first.bounding_box()
    return box["y"] + box["height"]


def test_the_verdict_is_on_the_first_screen(look, reported):
    page = look(1280, 800)
    for selector in (".verdict", ".box >> nth=0", ".box >> nth=1", ".box >> nth=2"):
        assert bottom(page, selector) <= 620
    assert bottom(page, ".verdict") <= 600
    assert reported[1].verdict.headline in page.inner_text(".verdict")
    assert "release.csv (300 rows" in page.inner_text("header")
    assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 800
    phone = look(390, 844, color_scheme="dark")
    assert bottom(phone, ".verdict") <= 844
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_no_fault_with_the_report(look, colours):
    from web_support import faults

    assert faults(look(1280, 800, color_scheme=colours)) + faults(look(390, 844, color_scheme=colours)) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_letters_of_pictures_can_be_read(look, width):
    page = look(width, 800)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    sizes = page.evaluate(
        """[...document.querySelectorAll('svg text')].map(text => {
            const svg = text.ownerSVGElement, scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return parseFloat(getComputedStyle(text).fontSize) * scale;
        })"""
    )
    assert len(sizes) > 20
    assert min(sizes) >= 12


def test_no_table_breaks_inside_a_word(look):
    page = look(390, 844)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    rules = page.evaluate(
        "[...new Set([...document.querySelectorAll('th, td')].map(cell => getComputedStyle(cell).overflowWrap))]"
    )
    assert rules == ["normal"]
    wide = page.evaluate("[...document.querySelectorAll('.scroll')].some(each => each.scrollWidth > each.clientWidth)")
    assert wide


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium on the path")
def test_on_paper_it_has_four_pages_with_numbers(reported, tmp_path):
    path = wi.report(reported[1], tmp_path / "a.pdf", guarantee=wi.PureDP(1.0))
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", content)) == 4


def test_weasyprint_gets_drawings_with_their_colours(reported, tmp_path, monkeypatch):
    from whosin.reporting import pdf

    page = pdf.with_styled_drawings(reported[0].read_text())
    drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert len(drawings) > 5
    for drawing in drawings:
        style = re.search(r"<style>(.*?)</style>", drawing, re.DOTALL)[1]
        assert "var(" not in style
        assert "currentColor" not in style
        assert ".picked { fill: #b3361e; }" in style
    assert re.sub(r"(<svg [^>]*>)<style>.*?</style>", r"\1", page, flags=re.DOTALL) == reported[0].read_text()
    pytest.importorskip("weasyprint")
    monkeypatch.setattr(pdf, "_browser", lambda: None)
    path = wi.report(reported[1], tmp_path / "w.pdf", guarantee=wi.PureDP(1.0))
    assert len(re.findall(rb"/Type /Page\b", path.read_bytes())) <= 4
