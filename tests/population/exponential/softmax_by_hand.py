"""The exponential mechanism on k-subsets by the definition: what the tests of the softmax modules compare with."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
from scipy.special import bdtrc, log_softmax, logsumexp

EXAMPLE = json.loads((Path(__file__).parents[2] / "data" / "fixtures.json").read_text(encoding="utf-8"))["expmech"]


def example_logits():
    """The recorded example: records i/4, three candidates, λ = 6, n = 6."""
    points = np.arange(12) / 4.0
    return EXAMPLE["lam"] * np.abs(points[:, None] - np.array(EXAMPLE["W"])) / 6.0


def log_probabilities(logits, chosen):
    """ln p_w(D), from the definition."""
    scores = -np.asarray(logits)[list(chosen)].sum(axis=0)
    return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())


def random_logits(seed, n_records, m, scale=1.0):
    """Normal logits (records, candidates)."""
    return scale * np.random.default_rng(seed).normal(size=(n_records, m))


def log_laws(logits, k):
    """ln P_in, ln P_out (records, outcomes) and ln P, by the definition: a softmax of every subset."""
    n = len(logits)
    subsets = np.array(list(itertools.combinations(range(n), k)))
    chances = log_softmax(-logits[subsets].sum(axis=1), axis=1)
    inside = (subsets[:, :, None] == np.arange(n)).any(axis=1)
    ins = np.array([logsumexp(chances[inside[:, x]], axis=0) for x in range(n)]) - math.log(math.comb(n - 1, k - 1))
    outs = np.array([logsumexp(chances[~inside[:, x]], axis=0) for x in range(n)]) - math.log(math.comb(n - 1, k))
    return ins, outs, logsumexp(chances, axis=0) - math.log(len(subsets))


def laws(logits, k):
    return tuple(np.exp(law) for law in log_laws(logits, k))


def excess(ins, outs, epsilon):
    """The larger of both hockey-stick divergences at e^ε, for each record."""
    factor = np.exp(np.broadcast_to(epsilon, len(ins)))[:, None]
    return np.maximum(np.maximum(ins - factor * outs, 0).sum(axis=1), np.maximum(outs - factor * ins, 0).sum(axis=1))


def broken(ins, outs, epsilon, delta):
    """Whether some record is told more about than (ε, δ) allows."""
    return bool((excess(ins, outs, epsilon) > delta + 1e-12).any())


def ratios(logits, k):
    ins, outs, _ = log_laws(logits, k)
    return ins - outs


def chance_of_so_many(misses, runs, rate):
    """P(Binomial(runs, rate) ≥ misses)."""
    return 1.0 if misses == 0 else float(bdtrc(misses - 1, runs, rate))
