"""What attacks with reference models find on six kinds of models: python benchmarks/reference_attacks.py --data FOLDER.

FOLDER (or the environment variable WHOSIN_DATA) holds adult/adult.data and mnist/mnist.npz. Every model is trained on
random halves of 1,000 records, 34 times; four trainings are targets, each attacked with the 32 that do not tell its
side. Peers get the same answers of the same models: ART the predictions about each target with half of the memberships,
SACRO-ML the confidences of all models. XGBoost and LightGBM have to be installed beside whosin, the peers in
environments of their own (--art PYTHON, --sacro PYTHON). Writes benchmarks/results/reference_attacks.json.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import _common
import numpy as np
from _attack_measures import measures

PACKAGES = ("whosin", "numpy", "scikit-learn", "torch", "xgboost", "lightgbm")
RECORDS, MODELS, TARGETS = 1000, 34, 4
NUMBERS = (0, 4, 10, 11, 12)
"""Columns of Adult that are numbers, but for the census weight."""


def adult(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of Adult, categories as 0 and 1."""
    with open(folder / "adult" / "adult.data", encoding="utf-8") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:RECORDS]]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    parts = [
        column.astype(float)[:, None] if place in NUMBERS else (column[:, None] == np.unique(column)).astype(float)
        for place, column in enumerate(columns[:14])
        if place != 2
    ]
    return np.concatenate(parts, axis=1), (columns[14] == ">50K").astype(int)


def digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Some digits, a tenth of the labels wrong."""
    with np.load(folder / "mnist" / "mnist.npz") as kept:
        X, y = kept["X"], kept["y"].astype(int)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:RECORDS]
    wrong = rng.random(RECORDS) < 0.1
    images = (X[rows].reshape(-1, 1, 28, 28) / 255).astype(np.float32)
    return images, np.where(wrong, rng.integers(10, size=RECORDS), y[rows])


def network() -> object:
    """A small convolutional network."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 49, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def estimators() -> dict[str, object]:
    """What is trained; a model whose package is not installed is left out, with a word about it."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from whosin import TorchAdapter

    found: dict[str, object] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=100, max_iter=300)),
        "MLP": make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=60)),
        "forest": RandomForestClassifier(50),
        "CNN": TorchAdapter(network, epochs=12, batch_size=50, learning_rate=2e-3),
    }
    try:
        from lightgbm import LGBMClassifier
        from xgboost import XGBClassifier
    except ImportError as missing:
        print(f"left out: {missing}", file=sys.stderr)
    else:
        found["XGBoost"] = XGBClassifier(n_estimators=50, n_jobs=1)
        found["LightGBM"] = LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1)
    return found


def attacked(estimator: object, X: np.ndarray, y: np.ndarray, peers: dict[str, str]) -> dict[str, dict]:
    """Measure every attack on the targets; peers get the answers in a file."""
    from scipy.special import expit

    from whosin import ReferenceModels
    from whosin.auditing.models.references import ATTACKS
    from whosin.training.adapters import as_adapter

    known = ReferenceModels.train(estimator, X, y, models=MODELS, rng=1)
    member = known.included[:TARGETS]
    found = {"loss": [measures(known.logits[t], member[t]) for t in range(TARGETS)]}
    found |= {name: [measures(known.attack(t, name), member[t]) for t in range(TARGETS)] for name in ATTACKS}
    answers = []
    for t in range(TARGETS):
        rng = np.random.default_rng([known.seed, t])
        model = as_adapter(estimator).fit(X[member[t]], y[member[t]], rng)
        answers.append(model.predict_proba(X))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.npz"
        np.savez(file, confidences=expit(known.logits), included=known.included, answers=np.array(answers), y=y)
        for script, python in peers.items():
            done = subprocess.run(
                [python, str(_common.HERE / script), str(file)],
                capture_output=True,
                text=True,
                check=False,
                env=_common.child_environment(),
            )
            if done.returncode:
                raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
            found |= json.loads(done.stdout.strip().splitlines()[-1])
    return {name: {key: float(np.mean([one[key] for one in runs])) for key in runs[0]} for name, runs in found.items()}


def paired(estimator: object, X: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """Areas of all attacks on one model of each pair, and how far the default is from the best of the others."""
    from scipy.stats import ttest_rel

    from whosin import ReferenceModels
    from whosin.auditing.models.references import ATTACKS

    known = ReferenceModels.train(estimator, X, y, models=MODELS, rng=1)
    targets = range(0, MODELS, 2)
    areas = {a: [measures(known.attack(t, a), known.included[t])["auc"] for t in targets] for a in ATTACKS}
    means = {name: float(np.mean(values)) for name, values in areas.items()}
    best = max((name for name in means if name != "auto"), key=means.__getitem__)
    limits = ttest_rel(areas["auto"], areas[best]).confidence_interval(0.95)
    found = {"auc": means, "best": best, "auto - best": means["auto"] - means[best]}
    return found | {"low": float(limits.low), "high": float(limits.high), "targets": len(targets)}


def main() -> int:
    """Run the comparison."""
    warnings.filterwarnings("ignore", "Stochastic Optimizer")
    parser = _common.parser_for(__doc__, data="adult and mnist")
    parser.add_argument("--art", help="a Python that has adversarial-robustness-toolbox")
    parser.add_argument("--sacro", help="a Python that has sacroml")
    parser.add_argument("--models", nargs="+", help="some of the models: print, write nothing")
    parser.add_argument("--paired", action="store_true", help="only: is the default as strong as the best attack?")
    options = parser.parse_args()
    folder = _common.data_folder(options.data, "adult").parent
    scripts = {"_art_side.py": options.art, "_sacro_side.py": options.sacro}
    peers = {script: python for script, python in scripts.items() if python}
    asked = {name: one for name, one in estimators().items() if not options.models or name in options.models}
    if options.paired:
        found = {}
        for name, estimator in asked.items():
            found[name] = paired(estimator, *(digits if name == "CNN" else adult)(folder))
            print(name, found[name], flush=True)
        if not options.models:
            _common.write_results("reference_attacks_paired", PACKAGES, {"results": found})
        return 0
    results, seconds = {}, {}
    for name, estimator in asked.items():
        start = time.process_time()
        results[name] = attacked(estimator, *(digits if name == "CNN" else adult)(folder), peers)
        seconds[name] = time.process_time() - start
        print(f"\n{name}")
        rows = [(attack, *(f"{found[key]:.3f}" for key in found)) for attack, found in results[name].items()]
        _common.print_table(("attack", "AUC", "advantage", "TPR at 1%"), rows)
    if not options.models:
        content = {
            "records": RECORDS,
            "models": MODELS,
            "targets": TARGETS,
            "cpu_seconds": seconds,
            "results": results,
        }
        _common.write_results("reference_attacks", PACKAGES, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
