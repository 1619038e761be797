"""How well a score tells members from others, counted the same way for every attack (numpy only)."""

from __future__ import annotations

import numpy as np


def measures(scores: np.ndarray, member: np.ndarray) -> dict[str, float]:
    """Area under the curve (ties half), largest TPR - FPR, and TPR at 1% FPR, in the sample."""
    inside, outside = np.sort(scores[member]), np.sort(scores[~member])
    levels = np.unique(scores)
    tpr, fpr = (1.0 - np.searchsorted(side, levels, "left") / len(side) for side in (inside, outside))
    below, upto = (np.searchsorted(outside, inside, side).mean() / len(outside) for side in ("left", "right"))
    return {
        "auc": 0.5 * (below + upto),
        "advantage": float(max(0.0, (tpr - fpr).max())),
        "tpr_at_1_percent": float(tpr[fpr <= 0.01].max(initial=0.0)),
    }
