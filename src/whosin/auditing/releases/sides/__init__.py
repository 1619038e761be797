"""Are the two sides comparable? Drift, dependence between rows, and a holdout that was not held out."""

from whosin.auditing.releases.sides.holdout import holdout_problem
from whosin.auditing.releases.sides.pool import Pool
from whosin.auditing.releases.sides.populations import Drift, drift
from whosin.auditing.releases.sides.relatives import Dependence, dependence

__all__ = ["Dependence", "Drift", "Pool", "dependence", "drift", "holdout_problem"]
