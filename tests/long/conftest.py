"""Long sweeps: left out unless they are asked for by ``pytest -m long``.

``WHOSIN_SEEDS=20`` runs every experiment with twenty seeds instead of one. Each judgement is a binomial test at 10⁻⁶:
a limit that holds exactly as promised raises a false alarm with probability at most 10⁻⁶ for each count judged; with at
most 1,000 counts a seed, at most one sweep of twenty seeds in fifty does. README.md lists what is judged where.
"""

import os

import pytest
from scipy.stats import binomtest


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        count = int(os.environ.get("WHOSIN_SEEDS", "1"))
        metafunc.parametrize("seed", range(count))


@pytest.fixture
def judge():
    """Return the judge of a count that happens with at most some chance in each of independent runs."""

    def at_most(count, runs, chance):
        p = binomtest(int(count), runs, chance, alternative="greater").pvalue
        assert p > 1e-6, f"{count} of {runs} runs, promised {chance:.4g}: p = {p:.2g}"

    return at_most
