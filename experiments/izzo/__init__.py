"""Izzo et al. 2022, "Provable Membership Inference Privacy": figure 1, and what its section 4 does on data.

Every file has ``compute() -> dict`` (the numbers) and ``draw(data) -> Figure`` (the picture of those numbers);
``python -m experiments.izzo`` writes both to ``results/``.
"""

NAMES = ("figure_1", "proposition_11", "dimension", "outlier", "real_data")
