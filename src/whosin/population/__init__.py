"""Population: what differential privacy with a large ε means on these records (practical membership privacy)."""

from whosin.population.exponential.analysis import exponential
from whosin.population.largest_epsilon import largest_epsilon
from whosin.population.local import randomized_response
from whosin.population.queries import Histogram, RegressionMoments
from whosin.population.result import PopulationPrivacy
from whosin.population.sums.analysis import gaussian, laplace

__all__ = [
    "Histogram",
    "PopulationPrivacy",
    "RegressionMoments",
    "exponential",
    "gaussian",
    "laplace",
    "largest_epsilon",
    "randomized_response",
]
