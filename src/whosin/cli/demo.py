"""The demonstration: two synthetic tables of real patients audited, a training run explained, a theorem checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whosin as wi
from whosin.cli import render
from whosin.cli.show_audit import show

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = ("mean radius", "mean texture", "mean smoothness", "mean compactness", "mean concavity", "mean symmetry")


def run() -> wi.auditing.SyntheticAudit:
    """Print the demonstration; return the audit of the generator that memorises."""
    from rich.console import Console

    console = Console(highlight=False)
    found = _audits(console)
    _training_run(console)
    _small_world(console)
    return found


def _audits(console: Any) -> wi.auditing.SyntheticAudit:
    """Audit a generator that memorises and one that does not."""
    rng = np.random.default_rng(1)
    patients = _patients()
    rows = rng.permutation(len(patients))
    train, holdout = patients[rows[: len(rows) // 2]], patients[rows[len(rows) // 2 :]]
    console.rule("1. A synthetic table made by a generator that memorises", align="left")
    console.print(
        f"{len(train)} breast cancer patients (Wisconsin diagnostic data) train a generator that repeats patients with "
        f"a little noise. {len(holdout)} others were held out. Can anyone tell who was in?\n"
    )
    with render.progress("Comparing every patient with every released row") as progress:
        found = wi.audit_synthetic(train, holdout, _noisy_copies(train, rng), groups="diagnosis", progress=progress)
    show(found, top=3, target=0.4)

    console.print()
    console.rule("2. The same patients, a generator that does not", align="left")
    console.print("It learns means and covariances alone.\n")
    with render.progress("Comparing every patient with every released row") as progress:
        other = wi.audit_synthetic(train, holdout, _normal_rows(train, rng), groups="diagnosis", progress=progress)
    console.print(other.explain())
    promised = wi.PureDP(1.0, adjacency="replace")
    console.print()
    console.print(f"Had {promised} been promised for the first: {found.compare(promised).text}")
    return found


def _training_run(console: Any) -> None:
    """Explain and calibrate a DP-SGD run."""
    console.print()
    console.rule("3. What does this training run promise?", align="left")
    with render.progress("Composing 2,000 steps"):
        training = wi.DPSGD(noise_multiplier=0.8, sample_rate=0.004, steps=2000)
        training.tpr_at(0.5)
    render.guarantee_text(training, prior=0.5)
    with render.progress("Searching for the smallest noise"):
        quieter = wi.calibrate.dpsgd(sample_rate=0.004, steps=2000, advantage=0.05)
    console.print()
    console.print(
        f"To keep every attacker's advantage below 0.05, raise the noise multiplier to "
        f"{render.number(quieter.noise_multiplier)}: advantage at most {render.number(quieter.advantage)} instead of "
        f"{render.number(training.advantage)}."
    )


def _small_world(console: Any) -> None:
    """Check a theorem by enumeration."""
    console.print()
    console.rule("4. Is the theory true? Play every data set of a small world", align="left")
    people = ("ann", "bob", "cat", "dan", "eve", "fay")
    told = wi.mechanisms.RandomizedResponse(lambda records: "ann" in records, epsilon=1.0)
    game = wi.worlds.uniform_subsets(people, size=3).play(told)
    promised = wi.PureDP(1.0, adjacency="replace").implies(wi.MIP)
    console.print(
        f"Six people, three of them drawn at random, and a noisy answer to whether Ann is among them (ε = 1). Over all "
        f"{len(game.world.masks)} data sets the best attacker guesses Ann right with probability "
        f"{game.accuracy('ann'):.6f}; the theorem (Izzo et al. 2022, theorem 4) allows {0.5 + promised.eta:.6f}. It is "
        f"attained: the bound is tight. For Bob, about whom nothing was asked, it is {game.accuracy('bob'):.6f}."
    )


def _patients() -> pl.DataFrame:
    """The Wisconsin diagnostic breast cancer data that ships with scikit-learn: six measurements and the diagnosis."""
    import polars as pl
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    places = [list(data.feature_names).index(name) for name in _COLUMNS]
    numbers = {name: data.data[:, place] for name, place in zip(_COLUMNS, places, strict=True)}
    return pl.DataFrame({**numbers, "diagnosis": data.target_names[data.target]})


def _noisy_copies(train: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Training rows drawn with repetition, each number moved by 5 % of its column's standard deviation."""
    import polars as pl

    drawn = train[rng.integers(len(train), size=len(train))]
    moved = [
        drawn[name] + 0.05 * float(train[name].to_numpy().std()) * rng.standard_normal(len(drawn)) for name in _COLUMNS
    ]
    return drawn.with_columns([pl.Series(name, column) for name, column in zip(_COLUMNS, moved, strict=True)])


def _normal_rows(train: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Normal draws with the means and the covariances of the patients of each diagnosis."""
    import polars as pl

    parts = []
    for (name,), group in train.group_by("diagnosis", maintain_order=True):
        x = group.select(_COLUMNS).to_numpy()
        drawn = rng.multivariate_normal(x.mean(axis=0), np.cov(x, rowvar=False), size=len(x))
        parts.append(pl.DataFrame({**dict(zip(_COLUMNS, drawn.T, strict=True)), "diagnosis": [name] * len(x)}))
    return pl.concat(parts)
