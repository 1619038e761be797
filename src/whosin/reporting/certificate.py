"""The report of a protected release: its certificate, what it promises, and what it does not protect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from whosin.numerics.rounding import confidence, count, percent_up, sentence
from whosin.protection import Certificate, Release
from whosin.reporting.blocks import Block, Code, Grid, Report, Section, Text, assumed, question, untested
from whosin.reporting.promise import promise_numbers, promise_pictures
from whosin.reporting.provenance import Setting, reproduce

MOST_NUMBERS = 50
"""Released numbers that are printed."""


def certificate_report(result: Release | Certificate, setting: Setting) -> Report:
    """Return the report of a certificate, with the released value if it is known and small."""
    certificate = result.certificate if isinstance(result, Release) else result
    sections = [
        question(
            f"The {certificate.estimator} of {count(certificate.train_size)} records, drawn at random from a pool of "
            f"{count(certificate.records)}, is released with noise. How well can somebody who knows the whole pool, "
            "and sees the release, tell whether a given record was drawn?"
        ),
        Section("answer", "The answer", _answer(certificate)),
    ]
    if isinstance(result, Release):
        sections.append(Section("value", "What was released", _value(result)))
    sections += [
        Section("picture", "The picture", promise_pictures(certificate.mip)),
        Section("numbers", "The numbers", promise_numbers(certificate.mip)),
        assumed(certificate.assumes),
        untested(list(map(sentence, certificate.not_protected)), "What was not tested, and is not protected"),
        Section("method", "How the limit was obtained", [_method(certificate)], folded=True),
        reproduce(
            setting,
            call=f"wi.protect(…, records, eta={certificate.eta!r}, noise={certificate.noise!r})",
            unknown="The draw and the noise come from a secure source without a seed: another run gives another value, "
            "with the same promise.",
        ),
    ]
    return Report(
        "What does this release promise to the people in the data?", "report of a protected release", sections
    )


def _answer(certificate: Certificate) -> list[Block]:
    blind = max(certificate.mip.train_fraction, 1.0 - certificate.mip.train_fraction)
    chance = "" if certificate.confidence_level is None else f" ({confidence(certificate.confidence_level)} confidence)"
    right = percent_up(min(1.0, blind + certificate.mip.eta))
    seeded = "TEST MODE: the draw and the noise came from a seed. Nobody is protected by this release."
    said = (
        f"Any attacker is right about a given record at most {right} of the time{chance}; without looking it is "
        f"{percent_up(blind)}."
    )
    warned = [Text(seeded, "warning")] if certificate.test_mode else []
    return [*warned, Text(said, "answer"), Text(certificate.explain())]


def _value(release: Release) -> list[Block]:
    value = release.to_dict()["value"]
    if _numbers(value) > MOST_NUMBERS:
        return [Text(f"{count(_numbers(value))} numbers, too many to print here.")]
    return [Code(str(value))]


def _numbers(value: Any) -> int:
    """How many numbers a nested value holds."""
    if isinstance(value, dict):
        return sum(map(_numbers, value.values()))
    return sum(map(_numbers, value)) if isinstance(value, list) else 1


def _method(certificate: Certificate) -> Grid:
    scales = np.asarray(certificate.noise_scale, dtype=np.float64)
    scale = f"{scales.min():.6g}" if scales.min() == scales.max() else f"{scales.min():.6g} to {scales.max():.6g}"
    rows = [
        ("asked for (η)", f"{certificate.eta:g}"),
        ("found, at most", percent_up(certificate.bound)),
        ("how", f"{certificate.route}, {certificate.kind}: {certificate.reason}"),
        ("noise", f"{certificate.noise}, scale {scale}, norm {certificate.norm:g}"),
        ("what the noise hides", f"{certificate.sensitivity:.6g}"),
        ("trainings on random subsets", count(certificate.draws)),
        ("ball", "none" if certificate.ball is None else f"radius {certificate.ball:.6g}"),
        ("source of the noise", certificate.sampler),
    ]
    if certificate.confidence_level is not None and math.isfinite(certificate.confidence_level):
        rows.append(("confidence", confidence(certificate.confidence_level)))
    return Grid("The certificate", ("what", "value"), rows, frozenset({1}))
