"""SACRO-ML's LiRA on stored confidences of the same reference models."""

from __future__ import annotations

import json
import sys
import tempfile

import numpy as np
from _attack_measures import measures
from sacroml.attacks import utils
from sacroml.attacks.likelihood_attack import LIRAAttack


def main(path: str) -> None:
    """Print the measures of two of its modes for every target as one JSON line."""
    with np.load(path) as kept:
        confidences, included, targets = kept["confidences"], kept["included"], len(kept["answers"])
    logits = np.vectorize(utils.logit)(confidences)
    found: dict[str, list] = {}
    for target in range(targets):
        member = included[target]
        others = [m for m in range(len(included)) if m not in (target, target ^ 1)]
        sides = [
            {i: logits[others, i][included[others, i] == inside].tolist() for i in range(len(member))}
            for inside in (False, True)
        ]
        answers = np.column_stack([1 - confidences[target], confidences[target]])
        for mode in ("offline", "online-carlini"):
            with tempfile.TemporaryDirectory() as folder:
                attack = LIRAAttack(folder, write_report=False, mode=mode)
            scores, _ = attack._compute_scores(np.ones(len(member), dtype=int), answers, *sides)
            found.setdefault(f"SACRO-ML LiRA ({mode})", []).append(measures(np.array(scores)[:, 1], member))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
