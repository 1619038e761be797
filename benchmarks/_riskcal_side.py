"""The riskcal side of the comparison. Run by the Python of .venv-riskcal: _riskcal_side.py TASK [NOISE].

Tasks: curve, calibrate, calibrate_tpr, bad_input, judge. Only calls to riskcal's public functions are timed;
what is computed afterwards to judge the answer is not.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib.metadata import version

_start = time.perf_counter()
import numpy as np  # noqa: E402
from dp_accounting.pld import privacy_loss_distribution as pld_module  # noqa: E402
from riskcal import analysis  # noqa: E402
from riskcal.calibration import dpsgd  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _start

import _side  # noqa: E402


def build_pld(noise_multiplier: float, sample_rate: float, steps: int):
    """The PLD of DP-SGD, built as riskcal's own documentation and evaluator build it."""
    return pld_module.from_gaussian_mechanism(
        standard_deviation=noise_multiplier,
        sampling_prob=sample_rate,
        use_connect_dots=True,
        value_discretization_interval=1e-4,
    ).self_compose(steps)


def tpr_by_duality(pld, fpr: list[float]) -> list[float]:
    """TPR bound read from the same PLD through its delta(epsilon): min over epsilon of delta + exp(epsilon) * fpr."""
    epsilon = np.linspace(-5.0, 15.0, 20_001)
    bounds = []
    for pmf in (pld._pmf_remove, pld._pmf_add):
        delta = np.asarray(pmf.get_delta_for_epsilon(epsilon))
        bounds.append([float(np.min(delta + np.exp(epsilon) * rate)) for rate in fpr])
    return [max(pair) for pair in zip(*bounds, strict=True)]


def curve() -> tuple[_side.Timed, dict]:
    """100-point ROC curve and four checked points, including the construction of the PLD."""
    fpr, check = np.array(_side.curve_fpr()), np.array(_side.CHECK_FPR)

    def work():
        pld = build_pld(**_side.CURVE)
        return pld, 1 - analysis.get_beta_from_pld(pld, alpha=fpr), 1 - analysis.get_beta_from_pld(pld, alpha=check)

    cost = _side.timed(work)
    pld, tpr, check_tpr = cost.value
    values = {
        "curve_tpr": tpr,
        "curve_points_with_tpr_below_fpr": int(np.sum(tpr < fpr * (1 - 1e-9))),
        "check_fpr": check,
        "check_tpr": check_tpr,
        "check_tpr_same_pld_by_duality": tpr_by_duality(pld, _side.CHECK_FPR),
        "true_tpr": _side.TRUE_TPR,
    }
    return cost, values


def own_view(noise_multiplier: float) -> dict:
    """Advantage and TPR at the target FPR as riskcal sees them, and the TPR that the same PLD gives by duality."""
    pld = build_pld(noise_multiplier, **_side.TRAINING)
    return {
        "advantage": analysis.get_advantage_from_pld(pld),
        "tpr": 1 - analysis.get_beta_from_pld(pld, alpha=_side.TARGET_FPR),
        "tpr_same_pld_by_duality": tpr_by_duality(pld, [_side.TARGET_FPR])[0],
    }


def calibrate() -> tuple[_side.Timed, dict]:
    """Noise multiplier for an advantage target."""
    cost = _side.timed(
        lambda: dpsgd.find_noise_multiplier_for_advantage(
            advantage=_side.TARGET_ADVANTAGE,
            sample_rate=_side.TRAINING["sample_rate"],
            num_steps=_side.TRAINING["steps"],
            noise_min=_side.LEAST_NOISE,
        )
    )
    return cost, {"noise_multiplier": cost.value, "own_view": own_view(cost.value)}


def calibrate_tpr() -> tuple[_side.Timed, dict]:
    """Noise multiplier for TPR <= target at a given FPR; riskcal states it as FNR beta at FPR alpha."""
    cost = _side.timed(
        lambda: dpsgd.find_noise_multiplier_for_err_rates(
            alpha=_side.TARGET_FPR,
            beta=1 - _side.TARGET_TPR,
            sample_rate=_side.TRAINING["sample_rate"],
            num_steps=_side.TRAINING["steps"],
            noise_min=_side.LEAST_NOISE,
        )
    )
    return cost, {"noise_multiplier": cost.value, "own_view": own_view(cost.value)}


def bad_input() -> tuple[_side.Timed, dict]:
    """Inputs that are no probability, or that overflow."""
    calls = {
        "advantage(epsilon=1, delta=2)": lambda: analysis.get_advantage_from_adp(1.0, 2.0),
        "advantage(epsilon=1, delta=-1)": lambda: analysis.get_advantage_from_adp(1.0, -1.0),
        "advantage(epsilon=-1, delta=0)": lambda: analysis.get_advantage_from_adp(-1.0, 0.0),
        "advantage(epsilon=1000, delta=0)": lambda: analysis.get_advantage_from_adp(1000.0, 0.0),
        "tpr(epsilon=1, delta=2, fpr=0.01)": lambda: 1 - analysis.get_beta_from_adp(1.0, 2.0, 0.01),
        "tpr(epsilon=1000, delta=0, fpr=0.01)": lambda: 1 - analysis.get_beta_from_adp(1000.0, 0.0, 0.01),
        "tpr(epsilon=1000, delta=0, fpr=0)": lambda: 1 - analysis.get_beta_from_adp(1000.0, 0.0, 0.0),
    }

    def work():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {name: _side.attempt(call) for name, call in calls.items()}

    cost = _side.timed(work)
    return cost, cost.value


def judge() -> tuple[_side.Timed, dict]:
    """How riskcal sees a noise multiplier given on the command line."""
    cost = _side.timed(lambda: own_view(float(sys.argv[2])))
    return cost, cost.value


TASKS = {
    "curve": curve,
    "calibrate": calibrate,
    "calibrate_tpr": calibrate_tpr,
    "bad_input": bad_input,
    "judge": judge,
}

if __name__ == "__main__":
    task = sys.argv[1]
    cost, values = TASKS[task]()
    versions = {name: version(name) for name in ("riskcal", "dp-accounting", "numpy", "scipy")}
    _side.report(task, cost, values, IMPORT_SECONDS, versions)
