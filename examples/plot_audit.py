"""
What a synthetic table gives away
=================================

Half of the rows of this release repeat people of the training data. The measured curve of the best attack found lies
far above blind guessing, also where hardly anybody is accused wrongly; the dash-dotted curve is what 1-differential
privacy would have allowed. ``wi.report(found, "audit.html", guarantee=promised)`` writes the same for a reader without
Python.
"""

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import whosin as wi

rng = np.random.default_rng(0)


def people(rows):
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(10, 1, rows).round(-2),
            "job": rng.choice(["cook", "clerk", "nurse", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05]),
        }
    )


train, holdout = people(1000), people(1000)
released = pl.concat([train.head(500), people(500)])
found = wi.audit_synthetic(train, holdout, released, rng=0)
promised = wi.PureDP(1.0, adjacency="replace")
print(found.explain())

fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, scale in zip(axes, ("linear", "log"), strict=True):
    found.plot(ax, scale=scale)
    promised.roc.plot(ax, label="promised: at most", scale=scale, linestyle="-.")
    ax.legend(ax.lines, ["blind guessing", "measured", "promised: at most"], loc="lower right", frameon=False)
axes[1].set(xlim=(1e-4, 1), ylim=(1e-4, 1.2))
plt.show()
