"""Who was in the batch? The best linear guess from a noisy sum of gradients.

A step of DP-SGD publishes s = Σ_i w_i·g_i + z, where g_i is the clipped gradient of record i at the published weights,
w_i whether it was in the batch, and z normal noise of standard deviation τ. An attacker who knows all records knows
every g_i, and that w_i has mean a_i and variance v_i beforehand. Of all linear functions of s, the one with the least
mean squared error is

    ŵ - a = V·G·(GᵀVG + τ²I)⁻¹·(s - Gᵀa) = V^½·(V^½KV^½ + τ²I)⁻¹·V^½·G·(s - Gᵀa),   K = GGᵀ,

rows of G being the g_i and V = diag(v). It subtracts what other records explain, which a plain product of s and g_i
does not: gradients of one task have much in common.
"""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array

_FLOOR = 1e-6
"""Least variance of the noise, as a share of the mean variance of the sum along a gradient: for runs without noise."""


def batch_guess(gradients: Array, published: Array, mean: Array, variance: Array, noise: float) -> Array:
    """Return the best linear guess of w - a for each record.

    Parameters
    ----------
    gradients : ndarray of shape (n, p)
    published : ndarray of shape (p,)
        The noisy sum.
    mean, variance : ndarray of shape (n,)
        Of w beforehand.
    noise : float
        Standard deviation of the noise.

    Notes
    -----
    Cost O(n²·p + n³).
    """
    from scipy.linalg import solve

    root = np.sqrt(variance)
    scaled = root[:, None] * gradients
    gram = scaled @ scaled.T
    least = _FLOOR * float(np.trace(gram)) / len(gram)
    if least == 0.0:
        return np.zeros(len(gram))
    gram[np.diag_indices_from(gram)] += max(noise**2, least)
    rest = scaled @ (published - mean @ gradients)
    return np.asarray(root * solve(gram, rest, assume_a="pos"))
