"""
What an epsilon means
=====================

The best accuracy that any attacker can reach under ε-differential privacy, at several priors. The prior is the chance
that the record was in the data before anything was released: with few members among the candidates, always answering
"no" is already right most of the time, and a small ε adds nothing to that.
"""

import matplotlib.pyplot as plt
import numpy as np

import whosin as wi

epsilons = np.linspace(0.0, 8.0, 81)

fig, ax = plt.subplots(layout="constrained")
for prior, style in [(0.5, "-"), (0.2, "--"), (0.05, "-."), (0.01, ":")]:
    accuracy = [wi.PureDP(epsilon).accuracy(prior=prior) for epsilon in epsilons]
    ax.plot(epsilons, accuracy, style, label=f"prior {prior:g}")
ax.set(xlabel="ε", ylabel="best possible accuracy", ylim=(0.48, 1.01))
ax.legend()
plt.show()
