"""Compute and draw everything: ``python -m experiments.izzo``, or some of it: ``... figure_1 outlier``."""

import sys
from importlib import import_module

from experiments.izzo import NAMES


def main(wanted: list[str]) -> None:
    """Run the files of that name, or all of them."""
    unknown = set(wanted) - set(NAMES)
    if unknown:
        sys.exit(f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in wanted or NAMES:
        import_module(f"experiments.izzo.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
