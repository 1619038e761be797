"""Compute and draw everything: ``python -m experiments.lowy``, or some of it: ``... figure_1 figure_n``."""

import sys
from importlib import import_module

from experiments.lowy import NAMES


def main(wanted: list[str]) -> None:
    """Run the files of that name, or all of them."""
    unknown = set(wanted) - set(NAMES)
    if unknown:
        sys.exit(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in wanted or NAMES:
        import_module(f"experiments.lowy.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
