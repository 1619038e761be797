"""Compute and draw everything: ``python -m experiments.lowy``, or some of it: ``... figure_1 figure_n``."""

from experiments import lowy
from experiments._shared import run_some

if __name__ == "__main__":
    run_some(lowy, __doc__)
