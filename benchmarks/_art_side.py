"""ART's black-box attacks on stored predictions: half of the memberships are known, the other half is measured."""

from __future__ import annotations

import json
import sys

import numpy as np
from _attack_measures import measures
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
from art.estimators.classification import BlackBoxClassifier


def main(path: str) -> None:
    """Print the measures of both attack models for every target as one JSON line."""
    with np.load(path) as kept:
        answers, included, y = kept["answers"], kept["included"], kept["y"]
    classes = answers.shape[2]
    numbers = np.arange(len(y), dtype=float)[:, None]
    found = {}
    for kind in ("rf", "gb"):
        runs = []
        for target, predictions in enumerate(answers):
            member = included[target]
            known = np.random.default_rng(target).random(len(y)) < 0.5
            model = BlackBoxClassifier(lambda x, p=predictions: p[x[:, 0].astype(int)], (1,), classes)
            attack = MembershipInferenceBlackBox(model, attack_model_type=kind)
            inside, outside = known & member, known & ~member
            attack.fit(numbers[inside], y[inside], numbers[outside], y[outside])
            chances = attack.infer(numbers[~known], y[~known], probabilities=True)
            runs.append(measures(np.asarray(chances, dtype=float).reshape(len(chances), -1)[:, -1], member[~known]))
        found[f"ART black box ({kind})"] = runs
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
