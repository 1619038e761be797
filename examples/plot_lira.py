"""
Reference models sharpen an attack
==================================

How many members of one training set are found, at each rate of false alarms? The model's own confidence says little:
some digits are easy for every model. LiRA and RMIA compare it with models that were trained with and without the
record, and find several times as many members where false alarms are rare.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import whosin as wi

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
y = np.where(rng.random(len(y)) < 0.2, rng.integers(10, size=len(y)), y)
references = wi.ReferenceModels.train(LinearDiscriminantAnalysis(), X, y, models=64, rng=0)

target = 0
member = references.included[target]
logits = references.logits[target]
audits = {
    "confidence alone": wi.audit(logits[member], logits[~member], rng=0),
    "LiRA": wi.audit_with_references(references, target, attack="lira", rng=0),
    "RMIA": wi.audit_with_references(references, target, attack="rmia", rng=0),
    "both, weighed by what they find on other models": wi.audit_with_references(references, target, rng=0),
}

fig, ax = plt.subplots(layout="constrained")
fpr = np.geomspace(1e-3, 1, 200)
for name, found in audits.items():
    ax.loglog(fpr, found.roc.tpr(fpr), label=f"{name}: advantage {found.advantage.estimate:.2f}")
ax.loglog(fpr, fpr, ":", color="grey", label="blind guesses")
ax.set(
    xlabel="false positive rate", ylabel="true positive rate", title="Linear discriminants on digits", ylim=(1e-3, 1)
)
ax.legend()
plt.show()
