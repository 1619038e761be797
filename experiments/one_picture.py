"""The picture of the README: one promise and one truth on the attacker's ROC.

Run ``python experiments/one_picture.py``; it writes docs/_static/one_picture.png.
"""

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import whosin as wi

TARGET = Path(__file__).parents[1] / "docs" / "_static" / "one_picture.png"


def main() -> None:
    """Draw the curves of a DP-SGD run, of the (ε, δ) that accountants report for it, and of a small world."""
    run = wi.DPSGD(noise_multiplier=0.8, sample_rate=0.004, steps=2000)
    reported = run.implies(wi.ApproxDP, delta=1e-5)
    people = range(8)
    noisy_count = wi.mechanisms.Laplace(lambda records: sum(records) / 4, scale=1.0)
    truth = wi.worlds.uniform_subsets(people, 4).play(noisy_count)
    promise = truth.dp()

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    reported.roc.plot(ax=left, scale="log", label=f"({reported.epsilon:.2f}, 1e-5)-DP as reported")
    run.roc.plot(ax=left, scale="log", label="the run itself")
    left.set_title("A DP-SGD run: noise 0.8, rate 0.004, 2,000 steps", fontsize=10)
    promise.roc.plot(ax=right, label=f"{promise.epsilon:.2f}-DP: knows everybody else")
    truth.roc(7).plot(ax=right, label="knows the pool only: the truth")
    right.set_title("A noisy mean of 4 out of 8 people, most exposed person", fontsize=10)
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
