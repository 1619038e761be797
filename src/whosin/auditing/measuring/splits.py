"""Many splits of the records into a part that chooses and a part that is counted, so that no split is a lottery.

One split makes the verdict depend on its seed. Here K splits, fixed beforehand, choose and count an attack each, and
:mod:`whosin.auditing.measuring.limits` lets a quarter of them vote. The first split also serves everything that needs
one: the curve, its band, groups and individual risks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whosin.auditing.measuring.attack import Attack, Evidence, Gain, collect_evidence, parts_of
from whosin.auditing.measuring.experiment import Experiment
from whosin.errors import check_rng

MOST_SPLITS = 48
FEWEST_SPLITS = 8
SPLIT_RECORDS = 25_600
"""Splits times records of the smaller side, about: the more records, the less the limits of two splits differ."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of one experiment. Each is made again when it is needed; of all but the first only counts are kept."""

    experiment: Experiment
    seed: int
    count: int
    first: Evidence
    _counted: dict[Gain, tuple[Attack, ...]] = field(default_factory=dict)

    def attacks(self, gain: Gain) -> tuple[Attack, ...]:
        """Return the attack that each split chose for a gain, counted on the records that it held out."""
        self.prepare((gain,))
        return self._counted[gain]

    def prepare(self, gains: Sequence[Gain], progress: Callable[[float], object] | None = None) -> None:
        """Choose and count the attacks for several gains in one pass; O(K·q·N log N) and K fits of a learned score."""
        new = [gain for gain in dict.fromkeys(gains) if gain not in self._counted]
        if not new:
            return
        found: dict[Gain, list[Attack]] = {gain: [] for gain in new}
        for number in range(self.count):
            evidence = self.first if number == 0 else _evidence(self.experiment, self.seed, number)
            for gain in new:
                found[gain].append(evidence.best(gain))
            if progress is not None:
                progress((number + 1) / self.count)
        for gain, attacks in found.items():
            self._counted[gain] = tuple(attacks)


def split(experiment: Experiment, rng: Any = None) -> Splits:
    """Return the splits of an experiment: 48, and fewer for many records. The seed comes from the data by default."""
    seed = seed_of(*experiment.columns) if rng is None else int(check_rng(rng).integers(2**63))
    smaller = min(len(experiment.members), len(experiment.non_members))
    count = min(MOST_SPLITS, max(FEWEST_SPLITS, 4 * math.ceil(SPLIT_RECORDS / (4 * smaller))))
    return Splits(experiment, seed, count, _evidence(experiment, seed, 0))


def seed_of(*parts: Any) -> int:
    """Return a seed that depends on the data alone: on arrays, or on text such as fingerprints."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part.encode() if isinstance(part, str) else np.ascontiguousarray(part + 0.0).tobytes()
        digest.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest(), "little") >> 1


def _evidence(experiment: Experiment, seed: int, number: int) -> Evidence:
    """Make one split. Each part of a partition chooses in its turn: what favours one split disfavours another."""
    partition, turn = divmod(number, parts_of(experiment))
    return collect_evidence(experiment, np.random.default_rng([seed, partition]), turn)
