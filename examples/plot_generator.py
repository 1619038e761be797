"""
What a generator gives away
===========================

A model that learned the density of 60 digits far too well, and draws new ones from it. Whoever may ask for the density
tells all of them from other digits; whoever only sees what is drawn learns much less. The two together are no more
than a learned score of both, counted on records that it did not see.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KernelDensity

import whosin as wi

digits = load_digits().data[np.random.default_rng(0).permutation(1797)] / 8 - 1
train, holdout = digits[:60], digits[60:1000]

density = KernelDensity(bandwidth=0.8).fit(train)
model = SimpleNamespace(discriminators=(density.score_samples,), sample=density.sample)

queries = {"discriminator": "eq. 3", "nearest": "eq. 2", "hybrid": "eq. 4"}
found = {name: wi.audit_generator(model, train, holdout, query=name, n_samples=1000, rng=0) for name in queries}

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for place, (name, audit) in enumerate(found.items()):
    estimate, low, high = audit.advantage.estimate, audit.advantage.lower, audit.advantage.upper
    left.plot([place, place], [low, high], color="tab:blue")
    left.plot(place, estimate, "o", color="tab:blue")
    print(name, audit.advantage)
left.axhline(0.0, color="0.6", linestyle=":")
left.set(ylabel="advantage with its limits at 95%", ylim=(-0.05, 1.05), xlim=(-0.5, 2.5))
left.set_xticks(range(3), [f"{name}\n({equation})" for name, equation in queries.items()])
left.spines[["top", "right"]].set_visible(False)
made = density.sample(12, random_state=1).reshape(3, 4, 8, 8).transpose(0, 2, 1, 3).reshape(24, 32)
right.imshow(made, cmap="gray_r", vmin=-1, vmax=1)
right.set(title="twelve generated digits", xticks=[], yticks=[])
plt.show()
