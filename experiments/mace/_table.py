"""The table of the README, from the committed results."""

from __future__ import annotations

import math
from typing import Any

from experiments.mace._run import read

__all__ = ["markdown", "rows"]

HEAD = (
    "figure",
    "model, images, query",
    "paper's W (cells)",
    "W if nothing leaked",
    "audit [95 % limits]",
    "heuristic attack",
)


def rows() -> list[tuple[str, str, dict[str, Any]]]:
    """Return figure, words and measurement of every query."""
    one, two, four, five, eight = (read(f"figure_{number}") for number in (1, 2, 4, 5, 8))
    left_out = read("exclusion")
    private = [
        ("5", f"DP-cGAN, MNIST zeros and sixes, {'no noise' if name == 'inf' else f'ε = {name}'}", found)
        for name, found in five["measured"].items()
    ]
    again = [
        ("–", f"JS-GAN, skin, trained without {words}, {number}", found)
        for words, name in (("the riskiest", "trained again"), ("a random tenth", "control"))
        for number, found in enumerate(left_out[name], 1)
    ]
    return [
        ("1a", "WGAN-GP, CIFAR-10, critic", one["1a"]["discriminator"]),
        ("1b, 1c", "JS-GAN, skin, discriminator", one["1b_1c"]["discriminator"]),
        ("1b, 1c", "JS-GAN, skin, nearest of 10,000 synthetic", one["1b_1c"]["synthetic"]),
        ("1c", "JS-GAN, skin, shadow model of 10,000 synthetic", one["1b_1c"]["shadow"]),
        ("2a", "privGAN, MNIST, larger of two discriminators", two["2a"]["max"]),
        ("2a", "privGAN, MNIST, both discriminators", two["2a"]["both"]),
        ("2b", "JS-GAN, skin, discriminator and nearest", two["2b"]["hybrid"]),
        ("2b", "WGAN-GP, skin, discriminator and nearest", two["2b_wgan"]["hybrid"]),
        ("4", "JS-GAN, skin, images with a box (control)", four["control"]["box"]),
        ("4", "JS-GAN, skin, plain images (control)", four["control"]["plain"]),
        *private,
        ("8", "classifier, skin, output", eight["black_box"]),
        ("8", "classifier, skin, hidden layer", eight["white_box"]),
        ("8", "classifier, skin, output for the true class", eight["true_class"]),
        ("–", "JS-GAN, skin, those that stay of the first", left_out["first model, those that stay"]),
        *again,
    ]


def markdown() -> str:
    """Return the table."""
    lines = [HEAD, ("---", "---", "---:", "---:", "---:", "---:")]
    for figure, words, found in rows():
        printed = found["plug_in_by_cells"]
        values = [f"{one['value']:.3f} ({int(cells):,})" for cells, one in printed.items()]
        nulls = ["{:.3f} to {:.3f}".format(*one["null"]["range_95"]) for one in printed.values()]
        audit, attack = found["audit"], found.get("heuristic")
        lines.append(
            (
                figure,
                words,
                "; ".join(values),
                "; ".join(nulls),
                _limits(audit),
                "–" if attack is None else _limits(attack),
            )
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _limits(found: dict[str, float]) -> str:
    lower, upper = math.floor(1000.0 * found["lower"]) / 1000.0, math.ceil(1000.0 * found["upper"]) / 1000.0
    return f"{found['estimate']:.3f} [{lower:.3f}, {upper:.3f}]"
