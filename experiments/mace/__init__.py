"""Xu et al. 2022, "MACE: a flexible framework for membership privacy estimation in generative models": figures 1 to 8.

Every file has ``compute(run) -> dict`` (trains what is missing, returns the numbers), ``draw(data) -> Figure`` (the
picture of those numbers) and ``DIFFERS`` (from the paper); ``python -m experiments.mace`` writes them to ``results/``.
"""

FIGURES = tuple(f"figure_{number}" for number in range(1, 9))
NAMES = (*FIGURES, "chance", "exclusion")
"""What the short scale makes."""
FULL = ("epochs", *FIGURES)
"""What the full scale makes."""
