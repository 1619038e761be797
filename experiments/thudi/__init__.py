"""Thudi et al. 2022, "Bounding Membership Inference": figures 1 to 7 and table 1.

Every file has ``compute() -> dict`` (the numbers) and ``draw(data) -> Figure`` (the picture of those numbers);
``python -m experiments.thudi`` writes both to ``results/``.
"""

NAMES = (*(f"figure_{number}" for number in range(1, 8)), "table_1")
