"""Lowy et al. 2024, "Why Does Differential Privacy with Large ε Defend Against Practical Membership Inference Attacks?"

Figures 1 to 6, and one of our own over n. Every file has ``compute() -> dict`` (the numbers) and
``draw(data) -> Figure`` (their picture); ``python -m experiments.lowy`` writes both to ``results/``.
"""

NAMES = (*(f"figure_{number}" for number in range(1, 7)), "figure_n", "readings")
