"""Compute and draw everything: ``python -m experiments.izzo``, or some of it: ``... figure_1 outlier``."""

from experiments import izzo
from experiments._shared import run_some

if __name__ == "__main__":
    run_some(izzo, __doc__)
