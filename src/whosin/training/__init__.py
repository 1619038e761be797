"""What trains models again and again: adapters for scikit-learn and torch, DP-SGD, and a copula for tables."""

from whosin.training.copula import GaussianCopula

__all__ = ["GaussianCopula"]
