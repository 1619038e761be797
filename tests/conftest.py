"""Settings for every test: how hard hypothesis searches, a plotting backend without a screen, and what needs extras."""

import gc
import itertools
import os
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")

# `make test` draws the same examples every time (steady), so that what passed passes again; pytest by itself draws new
# ones, and HYPOTHESIS_PROFILE=thorough twenty times as many.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.register_profile("steady", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "quick")

HERE = Path(__file__).parent
NEEDS = {
    "web": ("fastapi", "httpx", "schemathesis"),
    "ledger": ("sqlalchemy",),
    "cluster": ("distributed",),
    "experiments/gans": ("torch",),
    "auditing/models/test_generators.py": ("torch",),
}
"""Tests that are left out where a package is missing, unless WHOSIN_REQUIRE_EXTRAS=1 (as in `make test`)."""
TOGETHER = ("web", "ledger", "cluster", "reporting")
"""Folders that run in one process (pytest --dist loadgroup), like every file, so that what tests share is made once."""

_missing = {
    folder: [name for name in packages if find_spec(name) is None]
    for folder, packages in NEEDS.items()
    if any(find_spec(name) is None for name in packages)
}
if _missing and os.environ.get("WHOSIN_REQUIRE_EXTRAS") == "1":
    raise pytest.UsageError(f"packages that the tests need are missing: {_missing}")
collect_ignore = sorted(_missing)


def pytest_collection_modifyitems(config, items):
    if "long" not in config.getoption("markexpr"):
        long = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for path, of_one_file in itertools.groupby(items, key=lambda item: item.path):
        group = next(
            (place for place in TOGETHER if path.is_relative_to(HERE / place)), path.relative_to(HERE).as_posix()
        )
        for item in of_one_file:
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_finish():
    """What is loaded by now stays: the collector need not go through it again and again (a tenth of the time)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_terminal_summary(terminalreporter):
    for folder, packages in _missing.items():
        terminalreporter.write_line(f"NOT RUN: tests/{folder} (not installed: {', '.join(packages)})", yellow=True)
