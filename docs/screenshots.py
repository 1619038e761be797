"""Make the pictures of the page again: ``python docs/screenshots.py [FOLDER] [--all]``.

Starts the page with a private folder of its own, audits two small synthetic tables in a real browser, and writes two
pictures a tab and two of a report, reduced to a palette: at desktop width, and dark at phone width. With --all
each comes whole, at both widths, light and dark. Takes Playwright, Pillow and Chromium.
"""

import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WIDTHS = {"desktop": (1200, 900), "phone": (390, 844)}
TABS = ("explain", "calibrate", "audit", "result", "compare", "population")
KEPT = {("desktop", "light"), ("phone", "dark")}
COLOURS, LARGEST = (64, 48, 32, 16), 60_000


def people(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Return made-up people."""
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(10, 1, rows).round(-2),
            "job": rng.choice(["cook", "clerk", "nurse", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05]),
        }
    )


def files(folder: Path) -> dict[str, dict[str, Path]]:
    """Write a table that copies its training rows, and one that does not."""
    rng = np.random.default_rng(0)
    train, holdout = people(rng, 600), people(rng, 600)
    tables = {"train": train, "holdout": holdout}
    tables["copies"] = pl.concat([train.head(250), people(rng, 350)])
    tables["fresh"] = people(rng, 600)
    for name, table in tables.items():
        table.write_csv(folder / f"{name}.csv")
    return {
        title: {
            role: folder / f"{name}.csv" for role, name in zip(("train", "holdout", "synthetic"), names, strict=True)
        }
        for title, names in (
            ("first release", ("train", "holdout", "copies")),
            ("second release", ("train", "holdout", "fresh")),
        )
    }


def audit(page: Page, base: str, title: str, given: dict[str, Path]) -> None:
    """Upload three files as a person would, and wait for the number."""
    page.goto(f"{base}audit")
    for role, path in given.items():
        page.set_input_files(f"#{role}", path)
    page.fill("#name", title)
    page.click("#start")
    page.wait_for_selector('.audit[data-state="done"]', timeout=120_000)


def show(page: Page, base: str, tab: str) -> None:
    """Bring a tab into a state that is worth a picture."""
    paths = {"explain": "explain?epsilon=2&delta=0.00001", "result": "audit", "population": "tool/population"}
    page.goto(base + paths.get(tab, tab))
    if tab == "result":
        page.click("#history a >> nth=1")
        page.wait_for_selector('.audit[data-state="done"]')
    if tab == "compare":
        for box in page.query_selector_all('input[name="id"]'):
            box.check()
        page.wait_for_selector("#answer svg >> nth=1")
    page.wait_for_timeout(300)


def save(picture: bytes, path: Path) -> None:
    """Write a picture with as many colours as fit into the largest file."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in COLOURS:
        image.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size <= LARGEST:
            return
    print(f"{path.name} has {path.stat().st_size} bytes, more than {LARGEST}")


def main(target: Path, everything: bool) -> None:
    """Start the page, use it, and take its pictures."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        given = files(folder)
        report = folder / "report.html"
        words = [word for role, path in given["first release"].items() for word in (f"--{role}", path)]
        audited = [sys.executable, "-m", "whosin", "audit", *words, "--tolerate", "0.1", "--report", report]
        subprocess.run(audited, check=False, capture_output=True)  # exit code 1: more than 0.1 is shown
        command = [sys.executable, "-m", "whosin", "serve", "--port", "0", "--no-open", "--json"]
        server = subprocess.Popen([*command, "--data-dir", str(folder / "data")], stdout=subprocess.PIPE, text=True)
        try:
            address = json.loads(server.stdout.readline())["url"]
            base = address.partition("?")[0]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page()
            page.goto(address)
            for title, tables in given.items():
                audit(page, base, title, tables)
            state = page.context.storage_state()
            for width, (across, down) in WIDTHS.items():
                for colours in ("light", "dark"):
                    context = browser.new_context(
                        viewport={"width": across, "height": down}, color_scheme=colours, storage_state=state
                    )
                    page = context.new_page()
                    for tab in TABS:
                        if everything or (width, colours) in KEPT:
                            show(page, base, tab)
                            path = target / f"page-{tab}-{width}-{colours}.png"
                            save(page.screenshot(full_page=everything), path)
                    if everything or (width, colours) in KEPT:
                        page.goto(report.as_uri())
                        shown = {"clip": {"x": 0, "y": 0, "width": across, "height": min(down, 660)}}
                        picture = page.screenshot(**({"full_page": True} if everything else shown))
                        save(picture, target / f"report-{width}-{colours}.png")
                    context.close()
            browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    places = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    main(places[0] if places else HERE / "_static", "--all" in sys.argv)
