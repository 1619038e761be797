"""How often a broken promise is found in one run: python benchmarks/one_run_peers.py.

A training promises Gaussian DP with ε = 1, 2 and 4 at δ = 1e-5, and adds the promised noise, or half of it. 1,000
canaries with fair coins and independent scores; --runs runs of each, --peer-runs of them for jax-privacy. On the same
scores, at level 0.05, with 95 % limits on the shares:
the test of wi.audit_one_run(...).compare; the recursion of Mahloujifar, Melis and Chaudhuri (2024), written here after
the paper, with the same guesses; whosin's (ε, δ) test at δ = 1e-5; and jax-privacy 2.0.0, epsilon_one_run (Steinke et
al. 2023) and epsilon_one_run_fdp, in an environment of its own, made when absent (--without-jax leaves it out). Writes
benchmarks/results/one_run_peers.json.
"""

from __future__ import annotations

import bisect
import functools
import json
import tempfile
from pathlib import Path

import _common
import numpy as np

NAME, CANARIES, DELTA, LEVEL = "one_run_peers", 1000, 1e-5, 0.05
EPSILONS = (1.0, 2.0, 4.0)
JAX_PRIVACY = "2.0.0"


def promised(epsilon: float) -> float:
    """The μ of Gaussian DP that has this ε at δ = 1e-5."""
    from scipy.optimize import brentq

    import whosin as wi

    return float(brentq(lambda mu: wi.GaussianDP(mu).implies(wi.ApproxDP, delta=DELTA).epsilon - epsilon, 1e-3, 5.0))


def recursion_refutes(mu: float, canaries: int, guesses: int, right: int, level: float) -> bool:
    """Whether the recursion over upper sets (Mahloujifar et al. 2024) refutes Gaussian DP at this level."""
    from scipy.special import ndtr, ndtri

    hit, miss = level * right / canaries, level * (guesses - right) / canaries
    for i in range(right - 1, -1, -1):
        least = max(miss, float(ndtr(ndtri(hit) - mu))) if hit < 1.0 else 1.0
        hit, miss = hit + i / (guesses - i) * (least - miss), least
        if hit + miss > guesses / canaries:
            return True
    return hit + miss > guesses / canaries


def runs_of(mu: float, count: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Scores and coins of so many runs of the Gaussian mechanism, one coordinate for each canary."""
    rng = np.random.default_rng(seed)
    coins = [rng.random(CANARIES) < 0.5 for _ in range(count)]
    return [(mu * included + rng.normal(size=CANARIES), included) for included in coins]


@functools.cache
def least_refuting(mu: float, guesses: int) -> tuple[int, int]:
    """The least numbers of right guesses that refute: by whosin's test of the whole curve, and by the recursion.

    Every larger number refutes too. The recursion is the looser one, so that whosin's number is searched below its.
    """
    import whosin as wi
    from whosin.auditing.measuring.guess_bound import curve_p_value, symmetric_divergence

    allowed = symmetric_divergence(wi.GaussianDP(mu).roc)
    theirs = bisect.bisect_left(
        range(guesses + 1), True, key=lambda right: recursion_refutes(mu, CANARIES, guesses, right, LEVEL)
    )
    own = theirs
    while curve_p_value(allowed, CANARIES, guesses, own - 1) <= LEVEL:
        own -= 1
    return own, theirs


def ours(runs: list, mu: float) -> dict[str, int]:
    """Number of runs in which whosin, and the recursion on the same guesses, refute the promise.

    What compare refutes is found once, as the least number of right guesses, and not in every run again.
    """
    import whosin as wi

    point = wi.GaussianDP(mu).implies(wi.ApproxDP, delta=DELTA)
    audits = [wi.audit_one_run(s, c, delta=DELTA, rng=number) for number, (s, c) in enumerate(runs)]
    rights = np.array([audit._for_curves[0].right for audit in audits])
    least = least_refuting(mu, audits[0]._for_curves[0].guesses)
    return {
        "whosin, whole curve": int((rights >= least[0]).sum()),
        "Mahloujifar's recursion": int((rights >= least[1]).sum()),
        "whosin, (ε, δ)": sum(audit.compare(point).verdict == "violated" for audit in audits),
    }


def theirs(runs: list, epsilon: float) -> dict[str, int]:
    """Number of runs in which jax-privacy's limits exceed the promised ε."""
    python = _common.peer_python("jax_privacy", JAX_PRIVACY)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "scores.json"
        content = [{"inside": s[c].tolist(), "outside": s[~c].tolist()} for s, c in runs]
        path.write_text(json.dumps({"delta": DELTA, "runs": content}), encoding="utf-8")
        answer = _common.run_side(python, "_jax_privacy_side.py", str(path))
    names = answer["limits"][0]
    return {f"jax-privacy {n}": sum(one[n] > epsilon for one in answer["limits"]) for n in names}


def shares(found: dict[str, int], runs: int) -> dict[str, dict[str, float]]:
    """Shares of the runs with 95 % limits (Clopper and Pearson)."""
    from scipy.stats import binomtest

    answer = {}
    for name, count in found.items():
        limits = binomtest(count, runs).proportion_ci(0.95)
        answer[name] = {"runs": runs, "refuted": count / runs, "low": limits.low, "high": limits.high}
    return answer


def main() -> int:
    """Run all settings and print a table."""
    parser = _common.parser_for(__doc__)
    parser.add_argument("--runs", type=int, default=4000, help="runs of each setting (default 4000)")
    parser.add_argument("--peer-runs", type=int, default=100, help="of these, runs for jax-privacy (default 100)")
    parser.add_argument("--without-jax", action="store_true", help="leave jax-privacy out, and write nothing")
    options = parser.parse_args()
    settings = []
    for epsilon in EPSILONS:
        mu = promised(epsilon)
        for name, factor in (("promised noise", 1.0), ("half of it", 2.0)):
            runs = runs_of(factor * mu, options.runs, seed=int(10 * epsilon) + int(factor))
            found = shares(ours(runs, mu), len(runs))
            if not options.without_jax:
                some = runs[: options.peer_runs]
                found |= shares(theirs(some, epsilon), len(some))
            settings.append({"epsilon": epsilon, "mu": mu, "noise": name, "refuted": found})
            rows = [(key, *(f"{one[part]:.4g}" for part in one)) for key, one in found.items()]
            _common.print_table((f"ε = {epsilon:g}, {name}", "runs", "refuted", "from", "to"), rows)
            print(flush=True)
    if not options.without_jax:
        content = {
            "canaries": CANARIES,
            "level": LEVEL,
            "version_of_jax_privacy": JAX_PRIVACY,
            "settings": settings,
        }
        _common.write_results(NAME, ("whosin", "numpy", "scipy"), content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
