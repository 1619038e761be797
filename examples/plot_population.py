"""
What a large ε means on these records
=====================================

A mean with Gaussian noise is labelled ε = 8: hardly a promise against somebody who knows everybody else. Somebody who
knows only the pool learns far less about most records, and more about those that stand apart.
"""

import numpy as np

import whosin as wi

pool = np.append(np.random.default_rng(0).normal(size=99), 3.0)
result = wi.population.gaussian(pool, epsilon=8.0, delta=0.01, clip=3.0)
print(result.explain())

# %%
# Every record's own parameter, from the least to the most exposed, below the lines for stronger attackers.

result.plot()

# %%
# The same numbers as guesses: how often is somebody right who tosses a fair coin beforehand?

for name in ("pmp", "dp_on_records", "dp"):
    promise = getattr(result, name)
    print(f"{name}: {100 * promise.accuracy():.1f} %")
