"""Mechanisms: what adds the noise, with its law written down."""

from whosin.mechanisms.additive import AdditiveMechanism, Gaussian, Laplace
from whosin.mechanisms.base import FiniteMechanism
from whosin.mechanisms.discrete import Exponential, KMax, RandomizedResponse, Subsampled

__all__ = [
    "AdditiveMechanism",
    "Exponential",
    "FiniteMechanism",
    "Gaussian",
    "KMax",
    "Laplace",
    "RandomizedResponse",
    "Subsampled",
]
