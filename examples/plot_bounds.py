"""
The bounds of the literature
============================

Several papers bound what an attacker can do against differential privacy. Laid side by side, it shows which are tight:
at an even prior the bounds of Thudi et al., Izzo et al. and the corrected one of Xu et al. are one curve, the exact
ceiling.
"""

import whosin as wi

table = wi.bounds.table(1.0)
print(table)

# %%
# All bounds at one ε. Bounds on different quantities do not compare, so each quantity has its own group; the tightest
# of each are filled.

table.plot()

# %%
# The bounds on the accuracy by ε.

table.plot(quantity="accuracy")

# %%
# With δ > 0 and few members among the candidates most of them fall away, and no bound on the belief in membership is
# left.

wi.bounds.table(2.0, delta=1e-5, prior=0.1).plot(quantity="ppv")
