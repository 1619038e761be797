"""Mechanisms: what adds the noise, with its law written down, and where its randomness comes from."""

from whosin.mechanisms.additive import AdditiveMechanism, Gaussian, Laplace, NormExponential
from whosin.mechanisms.base import FiniteMechanism
from whosin.mechanisms.discrete import Exponential, KMax, RandomizedResponse, Subsampled
from whosin.mechanisms.sources import SecureSource, SeededSource, Source

__all__ = [
    "AdditiveMechanism",
    "Exponential",
    "FiniteMechanism",
    "Gaussian",
    "KMax",
    "Laplace",
    "NormExponential",
    "RandomizedResponse",
    "SecureSource",
    "SeededSource",
    "Source",
    "Subsampled",
]
