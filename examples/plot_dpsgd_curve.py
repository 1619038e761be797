"""
The curve of a DP-SGD run
=========================

A training run with DP-SGD has an attacker's ROC of its own. Beside it stand the curves of pure ε-differential privacy.
They have corners where the curve of the run is smooth, so no single ε describes the run well at every false-positive
rate: compare the left end, where a careful attacker works.
"""

import matplotlib.pyplot as plt
import numpy as np

import whosin as wi

fpr = np.linspace(0.0, 1.0, 401)

fig, ax = plt.subplots(layout="constrained")
ax.plot(fpr, wi.DPSGD(1.0, 0.01, 1000).roc.tpr(fpr), "k", lw=2, label="DP-SGD: noise 1, rate 0.01, 1000 steps")
for epsilon, style in [(0.5, "--"), (1.0, "-."), (2.0, ":")]:
    ax.plot(fpr, wi.PureDP(epsilon).roc.tpr(fpr), style, label=f"pure DP, ε = {epsilon:g}")
ax.plot([0, 1], [0, 1], color="0.8", zorder=0)
ax.set(xlabel="false-positive rate", ylabel="true-positive rate, at most", aspect="equal")
ax.legend(loc="lower right")
plt.show()
