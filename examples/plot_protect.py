"""
How much noise hides who was drawn
==================================

The noise that a mean of half of the records needs, against the number of records, at η = 0.1: an attacker who knows all
of them is right about a given one at most 60 % of the time. Replacing one record moves the mean by a share 1/k of a
distance, so the noise for a sum falls like 1/n. From the spread of the mean alone it falls like 1/√n only, and the
scale of the paper that proposed the notion lies far above.
"""

import matplotlib.pyplot as plt
import numpy as np

import whosin as wi

eta = 0.1
sizes = [30, 100, 300, 1000, 3000]
exact, spread, paper = [], [], []
for n in sizes:
    pool = np.random.default_rng(n).standard_normal(n)
    options = {"eta": eta, "noise": "norm_exponential"}
    exact.append(wi.protect("mean", pool, **options).certificate.noise_scale)
    sigma = pool.std(ddof=1) / np.sqrt(n)
    spread.append(wi.protect(np.mean, pool, moment_bound=sigma, **options).certificate.noise_scale)
    paper.append((6.16 / eta) ** 2 * sigma)

fig, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, paper, "^:", label="theorem of Izzo et al.")
ax.loglog(sizes, spread, "s--", label="from the standard deviation of the mean")
ax.loglog(sizes, exact, "o-", label="from all pairs of records (the default)")
ax.set(
    xlabel="records in the pool", ylabel="scale of Laplace noise", title="The mean of half of a normal pool, η = 0.1"
)
ax.legend()
plt.show()
