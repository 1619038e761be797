"""Population: what differential privacy with a large ε means on these records (practical membership privacy)."""

from whosin.population.additive import gaussian, laplace
from whosin.population.choose import largest_epsilon
from whosin.population.exponential import exponential
from whosin.population.result import PopulationPrivacy

__all__ = ["PopulationPrivacy", "exponential", "gaussian", "laplace", "largest_epsilon"]
