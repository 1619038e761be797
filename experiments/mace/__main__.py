"""Compute and draw everything: ``python -m experiments.mace``, or one figure: ``… --figure 4``.

``--dataset digits --quick`` needs no files and takes about a minute. ``--full`` has the paper's sizes and takes days on
one core: ``--full --hours 8`` trains for eight hours, and the next such call goes on where it stopped.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

from experiments.mace import FULL, NAMES
from experiments.mace._data import MissingData
from experiments.mace._run import RESULTS, Run, Unfinished, make


def parse(words: list[str]) -> tuple[list[str], Run]:
    """Return the figures that were asked for, and how to make them."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mace", description="Figures 1 to 8 of Xu et al. 2022.")
    choices = [name.removeprefix("figure_") for name in dict.fromkeys((*NAMES, *FULL))]
    parser.add_argument("--figure", action="append", choices=choices, help="only this one (repeatable)")
    parser.add_argument("--dataset", choices=("paper", "digits"), default="paper", help="digits need no file")
    parser.add_argument("--data", type=Path, default=None, help="folder of the image files (default: WHOSIN_DATA)")
    parser.add_argument("--cache", type=Path, default=None, help="folder of trained models")
    parser.add_argument("--out", type=Path, default=None, help="folder of the results")
    parser.add_argument("--quick", action="store_true", help="a few epochs, to see that all runs")
    parser.add_argument("--full", action="store_true", help="the paper's sizes, layers and numbers of images")
    parser.add_argument("--device", default="cpu", help="where torch computes, such as cuda (default: cpu)")
    parser.add_argument("--hours", type=float, default=math.inf, help="stop at the next checkpoint after so long")
    parser.add_argument("--seed", type=int, default=2022)
    given = parser.parse_args(words)
    if given.full and given.dataset == "digits":
        parser.error("--full needs the paper's images: leave --dataset digits out")
    cache = given.cache or Path(tempfile.gettempdir()) / "whosin-mace"
    data = given.data or (Path(os.environ["WHOSIN_DATA"]) if os.environ.get("WHOSIN_DATA") else None)
    as_published = given.dataset == "paper" and not given.quick
    home = RESULTS / "full" if given.full else RESULTS
    out = given.out or (home if as_published else cache / f"results-{given.dataset}")
    every = FULL if given.full else NAMES
    names = [name for name in every if given.figure is None or name.removeprefix("figure_") in given.figure]
    if not names:
        parser.error(f"--figure {given.figure[0]} is made {'without' if given.full else 'with'} --full alone")
    until = time.monotonic() + 3600.0 * given.hours
    return names, Run(given.dataset, data, cache, out, given.quick, given.seed, given.full, given.device, until)


def main(words: list[str]) -> None:
    """Run the figures that were asked for, or all of them; those whose training is unfinished are named."""
    names, run = parse(words)
    try:
        for name in names:
            try:
                make(name, run)
            except Unfinished as unfinished:
                print(f"{name} waits for {unfinished}")
    except MissingData as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main(sys.argv[1:])
