"""Compute and draw everything: ``python -m experiments.thudi``, or some of it: ``... figure_1 table_1``."""

from experiments import thudi
from experiments._shared import run_some

if __name__ == "__main__":
    run_some(thudi, __doc__)
