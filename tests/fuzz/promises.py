"""Promises: guarantees, curves, risks, calibration, composition, worlds, mechanisms, deletions."""

import contextlib
import math

import numpy as np

import whosin as wi
from whosin.errors import WhosinError

from .support import Bytes, check_json, check_share

ADJACENCIES = ("add_remove", "replace")
FAMILIES = ("independent", "bounded", "uniform", "prior")
MAKERS = (
    lambda b: wi.PureDP(b.amount(), b.odd(ADJACENCIES, ("swap", None))),
    lambda b: wi.ApproxDP(b.amount(), b.share(), b.odd(ADJACENCIES, ("", 1))),
    lambda b: wi.GaussianDP(b.amount(), b.odd(ADJACENCIES, ("swap", ()))),
    lambda b: wi.PMP(b.amount(), b.share(), b.share()),
    lambda b: wi.MIP(b.share(), b.share()),
    lambda b: wi.MembershipPrivacy(1.0 + b.tame() ** 2, b.odd(FAMILIES, ("",)), b.odd((True, False), (1, None))),
    lambda b: wi.DifferentialIdentifiability(b.share(), b.odd((2, 3, 10, 10**6, 10**30), (1, 2.5, -1))),
)
_CLASSES = (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.PMP, wi.MIP, wi.MembershipPrivacy, wi.DifferentialIdentifiability)
_PARAMETERS = ("delta", "train_fraction", "candidates", "sample_rate", "adjacency", "family", "negative")
_METRICS = ("accuracy", "advantage", "advantage_at_prior", "am", "npv", "ppv", "posterior", "recall")


def _guarantees(data):
    """Any guarantee, asked anything; its numbers are probabilities."""
    bits = Bytes(data)
    _ask(bits.choice(MAKERS)(bits), bits)


def _runs(data):
    """A DP-SGD run of few steps."""
    bits = Bytes(data)
    run = wi.DPSGD(bits.amount(), bits.share(), bits.odd((1, 2, 3), (0, -1, 1.5, None)))
    _ask(run, bits)


def _ask(g, bits):
    prior = bits.share()
    check_json(g.to_dict())
    with contextlib.suppress(WhosinError):
        values = [g.accuracy(prior), g.advantage, *g.posterior(prior), g.tpr_at(bits.share())]
        check_share(*values)
        low, high = values[2:4]
        assert low <= prior * (1 + 1e-12)
        assert high >= prior * (1 - 1e-12), (g, prior, low, high)
        assert values[0] >= max(prior, 1.0 - prior)
    with contextlib.suppress(WhosinError):
        g.risk(bits.choice(_METRICS), prior)
    with contextlib.suppress(WhosinError):
        g.explain(prior)
    str(g), g._repr_html_()
    parameters = {bits.choice(_PARAMETERS): bits.share() for _ in range(bits.whole(3))}
    str(g.implies(bits.choice(_CLASSES), **parameters))


def _calibrations(data):
    """Calibration and bounds: what comes back keeps the target."""
    bits = Bytes(data)
    name = bits.choice(("accuracy", "advantage", "posterior", "tpr_at"))
    limit = (bits.share(), bits.share()) if name == "tpr_at" else bits.share()
    prior, delta = bits.share(), bits.share() if bits.whole(2) else 0.0
    which = bits.whole(6)
    if which == 0:
        found = wi.calibrate.epsilon(**{name: limit}, prior=prior, delta=delta)
        risk = {
            "accuracy": lambda: found.accuracy(prior),
            "advantage": lambda: found.advantage,
            "posterior": lambda: found.posterior(prior)[1],
            "tpr_at": lambda: found.tpr_at(limit[1]),
        }[name]()
        assert risk <= (limit[0] if name == "tpr_at" else limit)
    elif which == 1 and name != "posterior":
        wi.calibrate.mip(**{name: limit}, train_fraction=prior)
    elif which == 2:
        rate = wi.calibrate.sampling_rate(bits.amount(), posterior=limit)
        assert 0.0 < rate <= 1.0
    elif which == 3:
        assert wi.calibrate.gaussian_noise(bits.amount(), bits.share(), bits.amount()) >= 0.0
    elif which == 4 and name != "posterior" and bits.rare():
        found = wi.calibrate.dpsgd(bits.share(), bits.odd((1,), (0, 1.5)), **{name: limit}, prior=prior)
        assert found.noise_multiplier >= 0.0
    else:
        table = wi.bounds.table(bits.amount(), bits.share(), prior, bits.usual(0.01, 0.0, 1.0))
        check_share(*(row.value for row in table if row.value is not None))
        check_json(table.to_dict())
        str(table), table._repr_html_()


def _curves(data):
    """Curves from any points and any laws, and every risk that is read off them."""
    bits = Bytes(data)
    roc = _curve(bits)
    roc.hull().symmetrised()
    roc.slopes  # noqa: B018
    check_json(roc.to_dict())
    other, prior = _curve(bits), bits.share()
    for attempt in (
        lambda: roc.slope_for(bits.number()),
        lambda: roc.divergence(bits.number()),
        lambda: check_share(roc.tpr(bits.number())),
        lambda: check_share(roc.fpr(bits.number())),
        lambda: roc.support(bits.number(), bits.number()),
        lambda: roc.compose(other),
        lambda: roc.dominates(other, bits.value()),
        lambda: roc.reversed(),
        lambda: check_share(wi.risks.accuracy(roc, prior), wi.risks.advantage(roc, prior), wi.risks.am(roc, prior)),
        lambda: check_share(wi.risks.ppv(roc, prior), wi.risks.npv(roc, prior)),
        lambda: check_share(wi.risks.tpr_at_fpr(bits.share())(roc, prior)),
        lambda: check_share(wi.risks.ppv_at_fpr(bits.share())(roc, prior)),
        lambda: check_share(wi.risks.weighted_accuracy(bits.share())(roc, prior)),
        lambda: _ratio(bits, roc, prior),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _curve(bits):
    size = 1 + bits.whole(6)
    x, y = ([bits.share() for _ in range(size)] for _ in range(2))
    if bits.whole(2):
        x, y = ([v for v in side if isinstance(v, float)] for side in (x, y))
        return wi.Roc(sorted(x), sorted(y)) if bits.whole(8) else wi.Roc(x, y)
    x, y = ([v if isinstance(v, float) else 0.0 for v in side] for side in (x, y))
    x, y = ([abs(v) if math.isfinite(v) else 0.0 for v in law] for law in (x, y))
    totals = [math.fsum(law) if max(law) < 1e300 else 0.0 for law in (x, y)]
    return wi.Roc.from_likelihoods(
        *([v / (total or 1.0) for v in law] for law, total in zip((x, y), totals, strict=True))
    )


def _ratio(bits, roc, prior):
    metric = wi.risks.RatioMetric([bits.tame() for _ in range(5)], [bits.amount() for _ in range(5)], bits.name())
    assert not math.isnan(metric(roc, prior))
    metric.threshold(roc, prior)


def _compositions(data):
    """Several guarantees together, and a budget."""
    bits = Bytes(data)
    given = [bits.choice(MAKERS)(bits) for _ in range(1 + bits.whole(3))]
    together = wi.ledger.compose(given * (1 + bits.whole(3)), delta=bits.usual(None, 1e-5, 0.0))
    check_json(together.to_dict())
    check_share(together.advantage)
    assert together.advantage >= max((g.advantage for g in given), default=0.0) * (1 - 1e-9)
    str(together), str(wi.ledger.Budget(bits.amount(), bits.usual(None, 1e-5), bits.share()))


def _worlds(data):
    """Small worlds with any prior, and any mechanism played in them."""
    bits = Bytes(data)
    people = list("abcd")[: 1 + bits.whole(4)]
    if bits.rare():
        people = [bits.choice(("ann", "bob", 1, 2.5, None, (1, 2), [1])) for _ in range(bits.whole(5))]
    world = bits.choice(
        (
            lambda: wi.worlds.uniform_subsets(people, bits.usual(1, 2, 0)),
            lambda: wi.worlds.independent(people, [bits.share() for _ in range(len(people) + bits.rare())]),
            lambda: wi.worlds.bounded_independent(people, [bits.share() for _ in people], bits.usual(1, 2)),
            lambda: wi.worlds.all_subsets(people),
            lambda: wi.worlds.one_of_two(people, *(bits.choice([*people, "x"]) for _ in range(2)), (), bits.share()),
            lambda: wi.worlds.explicit(people, _law(bits, [(p,) for p in people if not isinstance(p, list)])),
        )
    )()
    game = world.play(_mechanism(bits, people))
    record = bits.odd(people or ["a"], ("x", None, [1]))
    check_share(game.accuracy(record), game.advantage(record))
    for attempt in (
        lambda: check_share(game.accuracy(record, bits.share())),
        lambda: check_share(game.posterior(record, bits.usual(1.0, "x", 1))),
        lambda: str(game.pmp(bits.usual(0.0, 0.1))),
        lambda: str(game.mip()),
        lambda: str(game.membership_privacy(bits.choice((True, False)))),
        lambda: str(game.dp(bits.usual(0.0, 0.1))),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _law(bits, outputs):
    """Chances that sum to 1, or rarely do not."""
    weights = [bits.whole(9) for _ in outputs]
    return {out: weight / (sum(weights) or 1) + bits.rare() for out, weight in zip(outputs, weights, strict=True)}


def _mechanism(bits, people):
    m = wi.mechanisms
    finite = (
        lambda: m.RandomizedResponse(lambda records: "a" in records, bits.amount(), bits.share()),
        lambda: m.Exponential(["x", "y"], lambda record, candidate: bits.tame(), bits.amount()),
        lambda: m.KMax(people, bits.usual(2, 1, 3), bits.odd(("lowest", "null"), ("", None))),
        lambda: lambda records: _law(bits, ["x", "y", len(records)]),
    )
    additive = (
        lambda: m.Laplace(len, bits.amount()),
        lambda: m.Gaussian(lambda records: bits.usual(1.0, 2.0), bits.amount()),
        lambda: m.NormExponential(len, bits.amount(), bits.usual(1, 2, np.inf)),
    )
    kind = bits.whole(8)
    if kind == 0:
        return m.Subsampled(bits.choice(finite)(), bits.share())
    return bits.choice(additive if kind < 3 else finite)()


def _mechanisms(data):
    """What adds the noise: its promise and its samples."""
    bits = Bytes(data)
    mechanism = _mechanism(bits, ["a", "b"])
    source = wi.mechanisms.SeededSource(0)
    if hasattr(mechanism, "guarantee"):
        takes = {} if isinstance(mechanism, wi.mechanisms.FiniteMechanism) else {"sensitivity": bits.amount()}
        with contextlib.suppress(WhosinError):
            str(mechanism.guarantee(**takes))
    if hasattr(mechanism, "sample"):
        mechanism.sample(bits.choice((["a"], ["a", "b"], [])), source)


def _deletions(data):
    """How many may leave."""
    bits = Bytes(data)
    u = wi.unlearning
    epsilon = bits.choice(MAKERS)(bits) if bits.rare() else bits.amount()
    inclusion, threshold = bits.share(), bits.share()
    for attempt in (
        lambda: u.deletion_capacity(epsilon, inclusion, threshold),
        lambda: u.remaining(epsilon, inclusion, threshold, bits.usual(0, 3)),
        lambda: u.inclusion_for(epsilon, threshold, bits.usual(1, 100)),
        lambda: len(u.subsample(bits.choice(([1, 2], np.eye(3), (), None)), inclusion, 0)),
    ):
        with contextlib.suppress(WhosinError):
            assert attempt() >= 0
    result = u.Unlearning(epsilon, inclusion, threshold, bits.usual(0, 3, 10**30))
    check_json(result.to_dict())
    check_share(result.none_used)
    result.explain(), str(result), result._repr_html_()


TARGETS = {
    "guarantees": _guarantees,
    "runs": _runs,
    "calibrations": _calibrations,
    "curves": _curves,
    "compositions": _compositions,
    "worlds": _worlds,
    "mechanisms": _mechanisms,
    "deletions": _deletions,
}


def seeds(name):
    """Any bytes are right."""
    return None
