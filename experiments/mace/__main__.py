"""Compute and draw everything: ``python -m experiments.mace``, or one figure: ``… --figure 4``.

``--dataset digits --quick`` needs no files and takes about a minute.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from experiments.mace import NAMES
from experiments.mace._data import MissingData
from experiments.mace._run import RESULTS, Run


def parse(words: list[str]) -> tuple[list[str], Run]:
    """Return the figures that were asked for, and how to make them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mace", description="Figures 1 to 8 of Xu et al. 2022.")
    parser.add_argument("--figure", type=int, action="append", choices=range(1, 9), help="only this one (repeatable)")
    parser.add_argument("--dataset", choices=("paper", "digits"), default="paper", help="digits need no file")
    parser.add_argument("--data", type=Path, default=None, help="folder of the image files (default: WHOSIN_DATA)")
    parser.add_argument("--cache", type=Path, default=None, help="folder of trained models")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that all runs")
    parser.add_argument("--seed", type=int, default=2022)
    given = parser.parse_args(words)
    cache = given.cache or Path(tempfile.gettempdir()) / "whosin-mace"
    data = given.data or (Path(os.environ["WHOSIN_DATA"]) if os.environ.get("WHOSIN_DATA") else None)
    as_published = given.dataset == "paper" and not given.quick
    out = given.out or (RESULTS if as_published else cache / f"results-{given.dataset}")
    names = [f"figure_{number}" for number in given.figure] if given.figure else list(NAMES)
    return names, Run(given.dataset, data, cache, out, given.quick, given.seed)


def main(words: list[str]) -> None:
    """Run the figures that were asked for, or all of them."""
    names, run = parse(words)
    try:
        for name in names:
            import_module(f"experiments.mace.{name}").main(run)
    except MissingData as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main(sys.argv[1:])
