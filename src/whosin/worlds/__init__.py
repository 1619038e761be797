"""Worlds: the truth about membership, by enumeration of every data set in a small universe."""

from whosin.worlds.continuous import ContinuousGame
from whosin.worlds.game import FiniteGame, Game
from whosin.worlds.world import (
    World,
    all_subsets,
    bounded_independent,
    explicit,
    independent,
    one_of_two,
    uniform_subsets,
)

__all__ = [
    "ContinuousGame",
    "FiniteGame",
    "Game",
    "World",
    "all_subsets",
    "bounded_independent",
    "explicit",
    "independent",
    "one_of_two",
    "uniform_subsets",
]
