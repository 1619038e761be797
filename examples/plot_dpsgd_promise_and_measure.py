"""
DP-SGD: the promise and the measurement
=======================================

Training by DP-SGD promises that no attacker does better than a curve, even one who sees every step. One training is
enough to measure how near an attack comes: 500 canaries, digits with wrong labels, are each included by the toss of a
coin, and an attacker who knows all of them guesses from the noisy gradients which were in.

On the left the training keeps its promise. On the right somebody forgot the noise: the same attack sees nearly all, and
so many right guesses refute the promise.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits

from whosin.auditing.models import DPSGDAdapter
from whosin.auditing.runs import audit_training, mislabelled

X, y = load_digits(return_X_y=True)
canaries = mislabelled(X / 16, y, 500, rng=0)


def training(noise):
    return DPSGDAdapter(
        torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10)),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        sample_rate=0.25,
        steps=10,
        learning_rate=0.5,
    )


promise = training(2.0).guarantee
fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, noise, title in zip(axes, (2.0, 0.0), ("noise as promised", "noise forgotten"), strict=True):
    run = audit_training(training(noise), None, canaries, score="gradients", guesses=100, delta=1e-5, rng=0)
    run.plot(ax, guarantee=promise)
    compared = run.compare(promise)
    ax.set_title(f"{title}: {compared.verdict}")
    print(compared)
plt.show()
