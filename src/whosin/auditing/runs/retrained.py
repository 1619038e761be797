"""The result of an audit by retraining."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import Answer, Said, limits_by_column
from whosin.arrays import Array, Flags
from whosin.auditing.measuring.attack import Gain
from whosin.auditing.measuring.counts import count_scores
from whosin.auditing.measuring.estimate import Estimate
from whosin.auditing.measuring.groups import Groups
from whosin.auditing.measuring.guesses import OneRunComparison, guessed_pairs
from whosin.auditing.measuring.limits import ADVANTAGE
from whosin.auditing.measuring.verdict import Verdict
from whosin.auditing.runs.coin_attack import CoinAttack, scores_ahead, scores_crossed
from whosin.auditing.runs.coin_limits import mean_at_least, typical
from whosin.auditing.runs.one_run import OneRunAudit, audit_one_run
from whosin.auditing.runs.retrained_people import RetrainedIndividual, individual_risks
from whosin.auditing.runs.trained_promise import compare_over_trainings, epsilon_lower, matching_rng
from whosin.auditing.runs.trainings import Generator, Trainings
from whosin.errors import InputError, check_number, check_prior, check_probability, check_truth
from whosin.guarantees import Guarantee
from whosin.numerics.rounding import at_least, at_most, capital, of_hundred
from whosin.risks import Risk, linear_of, resolve
from whosin.roc import Roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FOLDS = 4
WORST = 10
"""Of how many units that looked worst the largest risk is measured."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Log odds of membership of every unit in every training, and the coins.

    The first trainings are only learned from; those after them are scored ``ahead`` by attacks that were learned on
    earlier ones, for limits. ``crossed`` scores all, by attacks learned on the others, for estimates.
    """

    answers: Array = field(repr=False)
    """Shape (trainings, units, queries)."""
    coins: Flags = field(repr=False)
    first: int
    ahead: Array = field(repr=False)
    pilot: Array = field(repr=False)
    """Scores of the first trainings, crossed among themselves."""
    crossed: Array = field(repr=False)
    main: int
    kind: str

    @classmethod
    def learn(cls, answers: Array, coins: Flags, main: int, kind: str) -> Scores:
        """Learn all attacks; see :mod:`whosin.auditing.runs.coin_attack` for their cost."""
        first = first_tested(len(coins))
        return cls(
            answers,
            coins,
            first,
            scores_ahead(answers, coins, first, main, kind),
            scores_crossed(answers[:first], coins[:first], 2, main, kind),
            scores_crossed(answers, coins, FOLDS, main, kind),
            main,
            kind,
        )

    @property
    def tested(self) -> Flags:
        """Coins of the trainings that are scored ahead."""
        return self.coins[self.first :]

    @cached_property
    def attack(self) -> CoinAttack:
        """The attack learned on all trainings."""
        return CoinAttack(self.answers, self.coins, self.main, self.kind)

    @cached_property
    def of_one_attack(self) -> tuple[Array, Flags]:
        """Scores by the attack learned on the first half of the trainings, and the coins, of the second half."""
        half = max(self.first, len(self.coins) // 2)
        attack = CoinAttack(self.answers[:half], self.coins[:half], self.main, self.kind)
        return np.array([attack.scores(one) for one in self.answers[half:]]), self.coins[half:]


def first_tested(trainings: int) -> int:
    """Return how many trainings are only learned from."""
    return max(8, trainings // 4)


def realised(scores: Array, coins: Flags, value: Gain = ADVANTAGE, cut: float | None = None) -> Array:
    """Return TPR - FPR, or another value, in each training, known exactly; a constant guess where a side is empty.

    Accused are scores above ``cut``. Scores are log odds at fair coins, so they bring the best threshold for
    u·TPR - v·FPR themselves, ln(v/u) (lemma 1 of Xu et al.): 0 for the advantage. The best one of the trainings that
    were learned from is too low, as their coins are known better than others.
    """
    if cut is None:
        u, v = value.weights or (1.0, 1.0)
        cut = math.log(v / u)
    accused = scores > cut
    inside, outside = coins.sum(axis=1), (~coins).sum(axis=1)
    rates = (
        (accused & coins).sum(axis=1) / np.maximum(inside, 1),
        (accused & ~coins).sum(axis=1) / np.maximum(outside, 1),
    )
    return np.where((inside > 0) & (outside > 0), value.at(rates[1], rates[0]), value.blind)


@dataclass(frozen=True, eq=False)
class RetrainedAudit(Answer):
    """What an attacker who can train copies learns about who is in the data, over trainings on random halves.

    *Risk over trainings* is what this way of training gives away about a unit (a record, or a person), whichever
    training comes out; *exposure in one release* is what a given release shows (:meth:`audit_release`).

    Examples
    --------
    A "generator" that repeats every second of its records, and what ten trainings of forty people find of it:

    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = wi.audit_retrained(lambda rows, rng: rows[::2], people, trainings=10, rng=0)
    >>> found.verdict.state, round(found.advantage.estimate, 1)
    ('leak', 0.4)
    """

    scores: Scores = field(repr=False)
    trainings: Trainings = field(repr=False)
    confidence_level: float
    labels: Mapping[str, NDArray[np.str_]] = field(default_factory=dict, repr=False)
    """Labels of the units by column, for :attr:`groups`."""
    _covariates: Array | None = field(default=None, repr=False)
    tolerate: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def _delta(self) -> float:
        return 1.0 - self.confidence_level

    @property
    def person_level(self) -> bool:
        """Whether people were tossed for, each with all of its records."""
        return self.trainings.people is not None

    @property
    def unit(self) -> str:
        """What was tossed for: "people" or "records"."""
        return "people" if self.person_level else "records"

    @property
    def units(self) -> int:
        """How many records or people there are."""
        return int(self.scores.coins.shape[1])

    @cached_property
    def by_training(self) -> Array:
        """TPR - FPR in each training that was tested, by an attack learned on earlier ones."""
        return realised(self.scores.ahead, self.scores.tested)

    @cached_property
    def advantage(self) -> Estimate:
        """TPR - FPR: its mean over trainings, and limits on that of a typical training.

        In more than half of all trainings it is at least ``lower`` (an order statistic; exact for any number of
        trainings). ``upper`` speaks of attackers who use the score learned on the first half of the trainings by any
        threshold: no upper limit covers all attackers.
        """
        return self._typical(slice(None), self._delta / 2)

    def accuracy(self, prior: float = 0.5) -> Estimate:
        """Return the share of right guesses at that prior, as :meth:`risk` does."""
        return self.risk("accuracy", prior)

    def risk(self, metric: str | Risk, prior: float = 0.5) -> Estimate:
        """Return a metric that is linear in the two rates, with limits on that of a typical training.

        "accuracy", "advantage", "advantage_at_prior", "am", or a :class:`whosin.risks.RatioMetric` whose denominator
        does not depend on the guess. Limits mean what those of :attr:`advantage` mean; a constant guess is allowed.
        """
        linear = linear_of(resolve(metric), check_prior(prior))
        if linear is None:
            raise InputError(
                f"metric must be linear in the two rates (accuracy, advantage, advantage_at_prior, am, or such a "
                f"RatioMetric) to be measured over trainings, got {metric!r}"
            )
        value = Gain(linear.constant, linear.tpr, linear.fpr)
        return self.advantage if value == ADVANTAGE else self._typical(slice(None), self._delta / 2, value)

    def _typical(self, who: Any, alpha: float, value: Gain = ADVANTAGE) -> Estimate:
        s = self.scores
        estimate = float(realised(s.crossed[:, who], s.coins[:, who], value).mean())
        values = realised(s.ahead[:, who], s.tested[:, who], value)
        lower = min(value.ceiling, max(value.blind, typical(values, alpha)))
        scores, coins = s.of_one_attack
        cuts = np.quantile(scores[:, who], np.linspace(0.0, 1.0, 101)) if scores[:, who].size else np.zeros(1)
        ways = (realised(scores[:, who], coins[:, who], value, cut) for cut in cuts)
        upper = min(value.ceiling, max(*(-typical(-way, alpha) for way in ways), lower, estimate))
        return Estimate(max(estimate, lower), lower, upper, self.confidence_level, ABOUT)

    @property
    def method(self) -> str:
        """How the limits were obtained, in words."""
        s = self.scores
        return (
            f"{len(s.coins)} trainings; {s.first} were only learned from, each of the others was attacked by what was "
            "learned on the trainings before it; the lower limit is an order statistic of the "
            f"{len(s.tested)} measured values; seed {self.trainings.seed}"
        )

    def most(self, share: float = 0.8) -> float:
        """Return a limit that more than this share of trainings reach: TPR - FPR is at least so large there."""
        share = check_number("share", share, low=0.0, high=1.0, open_low=True, open_high=True)
        return min(1.0, max(0.0, typical(self.by_training, self._delta, share)))

    @cached_property
    def mean_lower(self) -> float:
        """Lower limit of the mean of TPR - FPR over trainings: by betting, and as large as any valid limit can be."""
        s = self.scores
        pilot = realised(s.pilot, s.coins[: s.first])
        return max(0.0, mean_at_least(self.by_training, self._delta, pilot))

    @cached_property
    def worst(self) -> Estimate:
        """The mean risk of those who looked worst in earlier trainings, at most ten; the largest risk is no smaller."""
        s = self.scores
        count = max(1, min(WORST, self.units // 10))
        wins = np.where(s.tested, 1.0, -1.0) * np.sign(s.ahead)
        belief = np.abs(np.tanh(np.vstack([s.pilot, s.ahead]) / 2))
        means = np.cumsum(belief, axis=0) / np.arange(1, len(belief) + 1)[:, None]
        looked = [np.argsort(-means[s.first + t - 1], kind="stable")[:count] for t in range(len(wins))]
        values = np.array([one[rows].mean() for one, rows in zip(wins, looked, strict=True)])
        start = np.sort(means[s.first - 1])[-count:].mean()
        lower = max(0.0, mean_at_least(values, self._delta, np.full(4, start)))
        about = f"the {count} {self.unit} that looked worst before each training"
        return Estimate(max(lower, float(values.mean())), lower, 1.0, self.confidence_level, about)

    @cached_property
    def leaks(self) -> float:
        """Chance of so many right guesses if nothing leaked at all: a small one shows that something does.

        Independent coins make all right guesses together exactly binomial then; with balanced coins, pairs do.
        """
        from scipy.special import bdtrc

        guessed = self.scores.ahead > 0
        if self.trainings.balanced:
            told = guessed_pairs(self.scores.ahead, self.scores.tested, self.units, matching_rng(self.trainings.seed))
            right, total = sum(told.right), sum(told.guesses)
        else:
            right, total = int((guessed == self.scores.tested).sum()), guessed.size
        return min(1.0, float(bdtrc(right - 1, total, 0.5)) * (1.0 + 1e-9)) if right else 1.0

    @cached_property
    def roc(self) -> Roc:
        """The curve of the crossed scores, all trainings together: an estimate."""
        s = self.scores
        return count_scores(s.crossed[s.coins], s.crossed[~s.coins]).roc()

    def tpr_at(self, fpr: float) -> Estimate:
        """Return the share of members found where at most this share of outsiders is accused, in a typical training."""
        fpr = check_probability("fpr", fpr)
        s = self.scores
        found = np.array([_tpr(*one, fpr) for one in zip(s.ahead, s.tested, strict=True)])
        crossed = np.array([_tpr(*one, fpr) for one in zip(s.crossed, s.coins, strict=True)])
        if np.isnan(found).any():
            return Estimate(math.nan, 0.0, 1.0, self.confidence_level, f"not measurable with {self.units} {self.unit}")
        lower, upper = max(0.0, typical(found, self._delta / 2)), min(1.0, -typical(-found, self._delta / 2))
        return Estimate(
            float(np.clip(crossed.mean(), lower, upper)), lower, upper, self.confidence_level, "the attack used"
        )

    @cached_property
    def individual(self) -> RetrainedIndividual:
        """The risk over trainings of every unit."""
        return individual_risks(self.scores, self.trainings.people, self._covariates, self._delta)

    @cached_property
    def groups(self) -> RetrainedGroups:
        """Groups of units, with limits that hold together."""
        named = {
            (f"{column}={value}" if column else str(value)): labels == value
            for column, labels in self.labels.items()
            for value in np.unique(labels)
        }
        rows = []
        for name, who in named.items():
            rows.append(RetrainedGroup(name, int(who.sum()), self._typical(who, self._delta / (2 * len(named)))))
        return RetrainedGroups(tuple(rows), self.confidence_level)

    @cached_property
    def verdict(self) -> Verdict:
        """The one sentence to act on, and its state against what is tolerated."""
        a, level = self.advantage, f"{100 * self.confidence_level:g}% confidence"
        picked = (
            f"{capital(of_hundred(self.tpr))} of 100 people in the data can be picked out in an average training while "
            f"{of_hundred(self.fpr)} of 100 outsiders are wrongly accused."
        )
        limits = (
            f"In a typical training an attacker who knows the {self.unit} and can train copies has a TPR - FPR of at "
            f"least {at_least(a.lower)} ({level})."
        )
        if self.tolerate is not None and a.lower > self.tolerate:
            title = f"Leak found, above the tolerated {self.tolerate:g}"
            return Verdict("exceeds", title, picked, limits, self.tolerate)
        if self.tolerate is not None and a.upper <= self.tolerate:
            return Verdict(
                "within",
                f"Within the tolerated {self.tolerate:g}",
                f"At most {math.ceil(round(100 * a.upper, 9))} of 100 people can be picked out beyond chance in a "
                "typical training.",
                f"TPR - FPR is at most {at_most(a.upper)}, for {ABOUT.removeprefix('upper limit: ')} ({level}). Other "
                "attackers are not covered.",
                self.tolerate,
            )
        leak = a.lower > 0.0 or self.leaks <= self._delta / 2
        title = "Leak found" if leak else "No leak found"
        found = (picked, limits) if a.lower > 0.0 else (_FAINT, self._too_few) if leak else (_NONE, "")
        if self.tolerate is not None:
            return Verdict("undecided", f"Undecided, {self.tolerate:g} is tolerated", *found, self.tolerate)
        return Verdict("leak" if leak else "none found", title, *found)

    @property
    def _too_few(self) -> str:
        """How many trainings a limit takes, where there were fewer."""
        needed = math.ceil(math.log2(2.0 / self._delta))
        if len(self.scores.tested) >= needed:
            return ""
        least = next(count for count in itertools.count(needed) if count - first_tested(count) >= needed)
        return f"That takes at least {least} trainings at {100 * self.confidence_level:g}% confidence."

    @property
    def tpr(self) -> float:
        """Share of the members found in an average training: an estimate."""
        return float((self.scores.crossed[self.scores.coins] > 0.0).mean())

    @property
    def fpr(self) -> float:
        """Share of the outsiders accused by the same."""
        return float((self.scores.crossed[~self.scores.coins] > 0.0).mean())

    def epsilon_lower(self, delta: float = 0.0, *, adjacency: str = "add_remove") -> float:
        """Return an ε that the training is not below, at this δ, at the confidence level.

        ``adjacency`` is what the ε compares: a unit added or removed (takes independent coins), or replaced.
        """
        return epsilon_lower(self.scores, self.trainings, check_probability("delta", delta), adjacency, self._delta)

    def compare(self, guarantee: Guarantee) -> OneRunComparison:
        """Hold the trainings against a promise: "violated" at the confidence level, or "inconclusive".

        Differential privacy is tested by the number of right guesses: over all trainings for (ε, δ), training by
        training for a whole curve; under add/remove by units (it takes independent coins), under replacement by pairs
        of a member and an outsider, matched at random. MIP and PMP speak of halves of one size, and take
        ``coins="balanced"``. A promise is never confirmed: no audit covers all attackers. Several promises tested on
        one audit share its confidence.
        """
        return compare_over_trainings(self, guarantee)

    def audit_release(self, release: Any, included: Any) -> ReleaseExposure:
        """Audit a given release as one more training: exposure in this release.

        Parameters
        ----------
        release : table or model
            What was trained on the units that fair coins chose, and as this audit's trainings were: the same
            generator with as many rows for its training records, or a trained classifier.
        included : array of bool, or of 0 and 1
            One for each record: whether it was trained on.
        """
        people = self.trainings.people
        given = check_truth("included", included, (self.units if people is None else len(people.number),))
        coins = given if people is None else people.sides(given, "toss one coin for each person")
        subject = self.trainings.subject
        if isinstance(subject, Generator) and len(release) != subject.rows(int(given.sum())):
            raise InputError(
                f"release must have {subject.rows(int(given.sum()))} rows, as a training on {int(given.sum())} records "
                f"has here, got {len(release)}: another number of rows leaks more or less"
            )
        scores = self.scores.attack.scores(self.trainings.pooled(subject.answers(release)))
        value = float(realised(scores[None], coins[None])[0])
        run = audit_one_run(scores, coins, confidence_level=self.confidence_level, rng=self.trainings.seed)
        s = self.scores
        others = realised(s.crossed, s.coins)
        return ReleaseExposure(
            value, float((others >= value).mean()), 1.0 / (1.0 + np.exp(-scores)), coins, run, self.unit
        )

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        what = "each person, with all of its records," if self.person_level else "each record"
        tossed = (
            f"exactly half of the {self.unit} were in each training, chosen at random"
            if self.trainings.balanced
            else f"{what} was in each training if a fair coin of its own said so"
        )
        units = (
            ()
            if self.person_level
            else ("one record is one person: where several belong to one, name the column that says whose they are",)
        )
        return (
            tossed,
            "the attacker knows all these records and the code, and can train copies; only the coins are hidden",
            *units,
            f"this is about training on a random half of these {self.unit}: a release trained on all of them was not "
            "audited, and may leak more or less",
            "everything that looks at the records is done inside each training: what was fitted on all of them before, "
            "such as scales or encodings, leaks in every training alike, and is not seen",
            "the number of trainings was fixed beforehand",
            *self.notes,
        )

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert, the verdict first."""
        s, person = self.scores, self.individual
        chance = at_most(max(self.leaks, 1e-300), 2)
        sentences = [
            self.verdict.sentence,
            f"The model was trained {len(s.coins)} times on random halves of {self.units} {self.unit}; on average "
            f"TPR - FPR is about {self.advantage.estimate:.2g}. If nothing leaked, so many right guesses would have a "
            f"chance of at most {chance}.",
            person.sentence(self.unit),
            "All of this is risk over trainings; what one given release shows is another question.",
        ]
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "verdict": self.verdict.to_dict(),
            "advantage": self.advantage.to_dict(),
            "tpr": self.tpr,
            "fpr": self.fpr,
            "mean_lower": self.mean_lower,
            "most": {"0.8": self.most(0.8)},
            "worst": self.worst.to_dict(),
            "leaks_p_value": self.leaks,
            "epsilon_lower": {
                kind: self.epsilon_lower(adjacency=kind)
                for kind in (("replace",) if self.trainings.balanced else ("add_remove", "replace"))
            },
            "trainings": len(self.scores.coins),
            "by_training": self.by_training.tolist(),
            "units": self.units,
            "person_level": self.person_level,
            "coins": "balanced" if self.trainings.balanced else "independent",
            "roc": self.roc.to_dict(201),
            "tpr_at": {f"{fpr:g}": self.tpr_at(fpr).to_dict() for fpr in (0.001, 0.01, 0.1)},
            "individual": self.individual.to_dict(),
            "groups": self.groups.to_dict(),
            "confidence_level": self.confidence_level,
            "seed": self.trainings.seed,
            "method": self.method,
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def plot(self, ax: Axes | None = None, *, guarantee: Guarantee | None = None, scale: str = "linear") -> Axes:
        """Draw the curve over all trainings, where most single trainings lie, and a promise; return the axes."""
        from whosin.plots import draw_measured

        s = self.scores
        fpr = np.unique(np.concatenate([np.geomspace(1e-5, 0.1, 60), np.linspace(0.0, 1.0, 101)]))
        curves = np.array(
            [
                count_scores(one[coins], one[~coins]).roc().tpr(fpr)
                for one, coins in zip(s.crossed, s.coins, strict=True)
            ]
        )
        low, high = np.quantile(curves, [0.05, 0.95], axis=0)
        return draw_measured(
            ax,
            fpr,
            np.asarray(self.roc.tpr(fpr)),
            low,
            high,
            label="nine of ten trainings, and all together",
            scale=scale,
            promised=None if guarantee is None else np.asarray(guarantee.roc.tpr(fpr)),
        )

    def __str__(self) -> str:
        a, trainings = self.advantage, len(self.scores.coins)
        return (
            f"{self.verdict.title}: in a typical training at least {at_least(a.lower, 3)} (about {a.estimate:.2g}; "
            f"{100 * self.confidence_level:g}% confidence; {trainings} trainings, {self.units} {self.unit})"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.verdict._card(self._lists())


ABOUT = "upper limit: attackers who use the score learned on the first half of the trainings, by any threshold"
_FAINT = (
    "The guesses are right more often than chance allows, but how much an attacker gains in a typical training could "
    "not be shown."
)
_NONE = "That does not show that there is none: other attackers, or more trainings, may find one."


def _tpr(scores: Array, coins: Flags, fpr: float) -> float:
    """Share of members above the j-th highest outsider, j = fpr·(outsiders + 1): at most ``fpr`` if nothing leaks."""
    outside = np.sort(scores[~coins])[::-1]
    place = int(fpr * (len(outside) + 1) * (1.0 + 1e-12))
    if place < 1 or not coins.any():
        return math.nan
    return 1.0 if place > len(outside) else float((scores[coins] > outside[place - 1]).mean())


@dataclass(frozen=True)
class RetrainedGroup(Said):
    """One group of units, and the advantage in it.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(40, 2))
    >>> sides = np.where(people[:, 0] > 0, "right", "left")
    >>> found = wi.audit_retrained(lambda rows, rng: rows[rows[:, 0] > 0], people, groups=sides, trainings=10, rng=0)
    >>> group = next(group for group in found.groups if group.name == "right")
    >>> round(group.advantage.estimate, 2)
    0.92
    """

    name: str
    units: int
    advantage: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {"name": self.name, "units": self.units, "advantage": self.advantage.to_dict()}

    def __str__(self) -> str:
        return f"{self.name}: advantage {self.advantage}"


@dataclass(frozen=True)
class RetrainedGroups(Groups):
    """Groups with limits that hold together.

    Examples
    --------
    A "generator" that repeats the records of one side only:

    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(40, 2))
    >>> sides = np.where(people[:, 0] > 0, "right", "left")
    >>> found = wi.audit_retrained(lambda rows, rng: rows[rows[:, 0] > 0], people, groups=sides, trainings=10, rng=0)
    >>> for group in found.groups:
    ...     print(group.name, round(group.advantage.estimate, 2))
    left 0.0
    right 0.92
    """

    rows: tuple[RetrainedGroup, ...]
    confidence_level: float

    def __repr__(self) -> str:
        return "\n".join(map(str, self.rows))

    def _columns(self) -> dict[str, list[Any]]:
        names, units = [row.name for row in self.rows], [row.units for row in self.rows]
        return {"group": names, "units": units, **limits_by_column(row.advantage for row in self.rows)}


@dataclass(frozen=True, eq=False)
class ReleaseExposure(Said):
    """Exposure in one release: what it gives away, measured as one more training.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> people = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = wi.audit_retrained(lambda rows, rng: rows[::2], people, trainings=10, rng=0)
    >>> included = np.arange(40) < 20
    >>> exposed = found.audit_release(people[included][::2], included)
    >>> round(exposed.advantage, 2)
    0.25
    """

    advantage: float
    """TPR - FPR on this release by the attack learned on all trainings; known exactly."""
    as_bad: float
    """Share of the trainings that leak as much or more."""
    exposure: Array = field(repr=False)
    """The attacker's probability of membership of every unit, at fair coins."""
    included: Flags = field(repr=False)
    one_run: OneRunAudit
    """What the release says about the ε of the training, each unit being a canary."""
    unit: str

    def __str__(self) -> str:
        return (
            f"exposure in this release: TPR - FPR {self.advantage:.3g}; {100 * self.as_bad:.0f}% of the trainings "
            f"leak as much or more; {self.one_run}"
        )

    def compare(self, guarantee: Guarantee) -> OneRunComparison:
        """Hold this release against a promise."""
        return self.one_run.compare(guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "advantage": self.advantage,
            "as_bad": self.as_bad,
            "units": len(self.exposure),
            "one_run": self.one_run.to_dict(),
        }
