"""What comes out: the noisy estimate, and the certificate that says what it promises and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import finite_or_text
from whosin.arrays import Array
from whosin.guarantees import MIP
from whosin.guarantees.base import Promised
from whosin.numerics.rounding import percent_down, percent_up
from whosin.protection.together import JointCertificate, joined

NOT_PROTECTED = (
    "membership in the pool as a whole: the scale of the noise is a function of the pool, and whoever is not in the "
    "pool was not drawn",
    "further releases from these records: guarantees of this kind do not compose, two harmless releases may together "
    "reveal everybody; certificates of one drawn half add up (compose)",
    "other attacks, such as guessing the values of a record from those of others",
)


@dataclass(frozen=True, eq=False)
class Certificate(Promised):
    """A limit on what any attacker learns from one release about who was drawn, and how the limit was obtained.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> certificate = wi.protect("mean", np.linspace(0, 1, 100), eta=0.05).certificate
    >>> certificate.route, certificate.kind, certificate.bound <= 0.05
    ('average', 'computed exactly', True)
    >>> round(certificate.noise_scale, 3), round(certificate.advantage, 3)
    (0.04, 0.1)
    """

    mip: MIP
    """The guarantee."""
    eta: float
    """What was asked for: the attacker's largest excess over a blind guess."""
    bound: float
    """What was found, at most ``eta``."""
    estimator: str
    noise: str
    """"gaussian" or "norm_exponential"."""
    noise_scale: float | Array = field(repr=False)
    """Standard deviation of Gaussian noise, or s of noise with density ∝ exp(-‖x‖/s): one number, or one per coordinate
    in the shape of the estimate; of several estimates one after another."""
    norm: float
    """p of the norm of the noise."""
    route: str
    """"adjacent bound", "moment bound", "average", "moment" or "ball"."""
    kind: str
    """"proved by the user", "computed exactly", "deterministic (ball)" or "with confidence"."""
    sensitivity: float
    """What the noise hides, in the norm of the noise over its shape: the bound on the adjacent distance or on the mean
    deviation; the largest mean adjacent distance of a record; the mean distance from the centre; or the radius."""
    confidence_level: float | None
    """Probability that a sampled limit holds; None where nothing was sampled."""
    draws: int
    """How many trainings on random subsets went into it."""
    records: int
    train_size: int
    ball: float | None
    """Radius of the ball to which the estimate was pulled before the noise; None without one."""
    sampler: str
    """Where the noise and the draw came from."""
    test_mode: bool
    """True where a seed stood in for the secure source: nobody is protected."""
    reason: str

    @property
    def guarantee(self) -> MIP:
        """What the curve and every risk are read off."""
        return self.mip

    def compose(self, other: Certificate, *, same_draw: bool, adaptive: bool = False) -> JointCertificate:
        """Return what this release and another one from the same drawn half promise together.

        Parameters
        ----------
        other : Certificate
            That of the other release.
        same_draw : bool
            True where both used the same drawn half; releases from halves drawn anew have no total.
        adaptive : bool
            Whether the other estimator was chosen after looking at this release.

        Raises
        ------
        ImplicationError
            Where no total follows, with the reason.
        """
        return joined((self, other), same_draw, adaptive)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the guarantee rests on, in words."""
        own = {
            "proved by the user": "the bound that was given as an argument is true for every subset of the pool",
            "computed exactly": "",
            "deterministic (ball)": "",
            "with confidence": (
                f"the limit was sampled and holds with probability {self.confidence_level!r}, over the random subsets; "
                "runs are not repeated until one looks good"
            ),
        }[self.kind]
        box = (
            "the estimate depends on the drawn records and on fresh randomness alone, and has one shape",
            "the training never fails; should it fail on the drawn records, nobody else learns that it did",
        )
        gap = "2^-54" if self.noise == "gaussian" else "about 2^-38"
        lines = (
            *self.mip.assumes,
            own,
            *(() if self.kind == "computed exactly" else box),
            "the drawn records, the estimate before the noise, what the training prints and the time that it takes "
            "stay secret",
            f"the noise follows its law up to {gap} for each number released",
        )
        warning = ("TEST MODE: the draw and the noise came from a seed, nobody is protected",) if self.test_mode else ()
        return (*warning, *(line for line in lines if line))

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the guarantee says nothing about."""
        return NOT_PROTECTED

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        blind = 1.0 - min(self.train_size, self.records - self.train_size) / self.records
        sentences = [
            f"The {self.estimator} of {self.train_size} of {self.records} records, drawn at random, was released with "
            f"{self._noise_in_words()}.",
            f"Somebody who knows all {self.records} records, and sees the release, guesses right whether a given one "
            f"was drawn at most {percent_up(blind + self.eta)} of the time; without looking it is "
            f"{percent_up(blind)}.",
            f"This is {self._kind_in_words()}: {self.reason}.",
            "It holds for this release alone, and it does not hide who is in the pool.",
        ]
        if self.test_mode:
            sentences.insert(0, "TEST MODE: a seed was used instead of secure randomness, so nobody is protected.")
        return " ".join(sentences)

    def _noise_in_words(self) -> str:
        scales = np.asarray(self.noise_scale)
        if not scales.any():
            return "no noise, for none is needed"
        if scales.ndim and scales.min() != scales.max():
            size = f"{scales.min():.4g} to {scales.max():.4g}"
        else:
            size = f"{scales.max():.4g}"
        if self.noise == "gaussian":
            return f"Gaussian noise of standard deviation {size}"
        return f"noise of density ∝ exp(-‖x‖/{size}) in the {self.norm:g}-norm"

    def _kind_in_words(self) -> str:
        if self.kind == "with confidence":
            return f"certified with {percent_down(float(self.confidence_level or 0.0))} confidence"
        return {"proved by the user": "a theorem, given a bound", "computed exactly": "computed exactly"}.get(
            self.kind, "certain, without sampling"
        )

    def __str__(self) -> str:
        sure = "" if self.confidence_level is None else f" with confidence {self.confidence_level:g}"
        test = "TEST MODE, not protected: " if self.test_mode else ""
        return (
            f"{test}{self.eta:g}-MIP{sure} ({self.route}, {self.kind}) by {self._noise_in_words()}; "
            f"{self.train_size} of {self.records} records drawn"
        )

    def _lists(self) -> dict[str, tuple[str, ...]]:
        return {"Assumes": self.assumes, "Not protected": self.not_protected}

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; scales as nested lists where there is one per coordinate."""
        plain = (
            "eta", "bound", "estimator", "noise", "route", "kind", "sensitivity", "confidence_level", "draws",
            "records", "train_size", "ball", "sampler", "test_mode", "reason",
        )  # fmt: skip
        return {
            "mip": self.mip.to_dict(),
            **{name: getattr(self, name) for name in plain},
            "norm": finite_or_text(self.norm),
            "noise_scale": np.asarray(self.noise_scale).tolist(),
            "assumes": list(self.assumes),
            "not_protected": list(self.not_protected),
            "explanation": self.explain(),
        }


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy estimate and its certificate.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> release = wi.protect("mean", np.linspace(0, 1, 100), eta=0.05)
    >>> abs(release.value - 0.5) < 10 * release.certificate.noise_scale
    True
    >>> release.certificate.train_size, release.training is None
    (50, True)
    """

    value: Any
    """A number, an array, or a scikit-learn model with noisy coefficients; a list or dictionary of them for several."""
    certificate: Certificate
    training: NDArray[np.int64] | None = field(default=None, repr=False)
    """Positions of the drawn records, if they were asked for: they must not be published."""

    def __str__(self) -> str:
        return f"{self.value} ({self.certificate})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self.value))}</pre>{self.certificate._repr_html_()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the value and the certificate for JSON, never the drawn records."""
        return {"value": _plain(self.value), "certificate": self.certificate.to_dict()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if hasattr(value, "coef_"):
        learned = {name: np.asarray(getattr(value, name)).tolist() for name in ("coef_", "intercept_")}
        return {"model": type(value).__name__, **learned}
    return np.asarray(value).tolist()
