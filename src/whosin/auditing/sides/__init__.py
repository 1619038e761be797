"""Are the two sides comparable? Drift, dependence between rows, and a holdout that was not held out."""

from whosin.auditing.sides.holdout import holdout_problem
from whosin.auditing.sides.pool import Pool
from whosin.auditing.sides.populations import Drift, drift
from whosin.auditing.sides.relatives import Dependence, dependence

__all__ = ["Dependence", "Drift", "Pool", "dependence", "drift", "holdout_problem"]
