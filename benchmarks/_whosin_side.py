"""The whosin side of the comparison. Run by a Python that has whosin: _whosin_side.py TASK [NOISE].

Tasks: curve, calibrate, calibrate_tpr, bad_input, judge, with the same parameters as _riskcal_side.py.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import PackageNotFoundError, version

_start = time.perf_counter()
import dp_accounting.pld.pld_pmf  # noqa: E402, F401
import numpy as np  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.special  # noqa: E402, F401

import whosin as wi  # noqa: E402

# whosin loads its parts and these libraries on first use; loading them here keeps imports out of the timed work.
for _name in ("DPSGD", "ApproxDP", "calibrate"):
    getattr(wi, _name)

IMPORT_SECONDS = time.perf_counter() - _start

import _side  # noqa: E402


def curve() -> tuple[_side.Timed, dict]:
    """100-point ROC curve and four checked points, including everything needed to build them."""
    fpr, check = np.array(_side.curve_fpr()), np.array(_side.CHECK_FPR)

    def work():
        roc = wi.DPSGD(**_side.CURVE).roc
        return roc.tpr(fpr), roc.tpr(check)

    cost = _side.timed(work)
    tpr, check_tpr = cost.value
    values = {
        "curve_tpr": tpr,
        "curve_points_with_tpr_below_fpr": int(np.sum(tpr < fpr * (1 - 1e-9))),
        "check_fpr": check,
        "check_tpr": check_tpr,
        "true_tpr": _side.TRUE_TPR,
    }
    return cost, values


def own_view(training: wi.DPSGD) -> dict:
    """Advantage and TPR at the target FPR as whosin sees them."""
    tpr = np.asarray(training.roc.tpr(np.array([_side.TARGET_FPR])))
    return {"advantage": float(training.advantage), "tpr": float(tpr[0])}


def calibrate() -> tuple[_side.Timed, dict]:
    """Noise multiplier for an advantage target."""
    cost = _side.timed(lambda: wi.calibrate.dpsgd(**_side.TRAINING, advantage=_side.TARGET_ADVANTAGE))
    return cost, {"noise_multiplier": float(cost.value.noise_multiplier), "own_view": own_view(cost.value)}


def calibrate_tpr() -> tuple[_side.Timed, dict]:
    """Noise multiplier for TPR <= target at a given FPR."""
    cost = _side.timed(lambda: wi.calibrate.dpsgd(**_side.TRAINING, tpr_at=(_side.TARGET_TPR, _side.TARGET_FPR)))
    return cost, {"noise_multiplier": float(cost.value.noise_multiplier), "own_view": own_view(cost.value)}


def guarantee(epsilon: float, delta: float):
    """The (epsilon, delta) guarantee as an object with advantage() and roc()."""
    return wi.ApproxDP(epsilon, delta)


def bad_input() -> tuple[_side.Timed, dict]:
    """Inputs that are no probability, or that are very large."""

    def advantage(epsilon: float, delta: float) -> object:
        return guarantee(epsilon, delta).advantage

    def tpr(epsilon: float, delta: float, fpr: float) -> object:
        return guarantee(epsilon, delta).roc.tpr(np.array([fpr]))[0]

    calls = {
        "advantage(epsilon=1, delta=2)": lambda: advantage(1.0, 2.0),
        "advantage(epsilon=1, delta=-1)": lambda: advantage(1.0, -1.0),
        "advantage(epsilon=-1, delta=0)": lambda: advantage(-1.0, 0.0),
        "advantage(epsilon=1000, delta=0)": lambda: advantage(1000.0, 0.0),
        "tpr(epsilon=1, delta=2, fpr=0.01)": lambda: tpr(1.0, 2.0, 0.01),
        "tpr(epsilon=1000, delta=0, fpr=0.01)": lambda: tpr(1000.0, 0.0, 0.01),
        "tpr(epsilon=1000, delta=0, fpr=0)": lambda: tpr(1000.0, 0.0, 0.0),
    }
    cost = _side.timed(lambda: {name: _side.attempt(call) for name, call in calls.items()})
    return cost, cost.value


def judge() -> tuple[_side.Timed, dict]:
    """How whosin sees a noise multiplier given on the command line."""
    noise = float(sys.argv[2])
    cost = _side.timed(lambda: own_view(wi.DPSGD(noise_multiplier=noise, **_side.TRAINING)))
    return cost, cost.value


TASKS = {
    "curve": curve,
    "calibrate": calibrate,
    "calibrate_tpr": calibrate_tpr,
    "bad_input": bad_input,
    "judge": judge,
}


def versions() -> dict[str, str]:
    """Versions of whosin and of the numerical libraries it runs on."""
    found = {}
    for name in ("whosin", "dp-accounting", "numpy", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    task = sys.argv[1]
    cost, values = TASKS[task]()
    _side.report(task, cost, values, IMPORT_SECONDS, versions())
