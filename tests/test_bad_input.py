"""Bad input: every public callable says no with the right class, and names the argument and what it got.

Three tables. The first crosses every numeric argument with the values that its kind refuses, the second adds limits of
their own, the third lists what is particular to one callable. A message that does not help is a failure here.
"""

import math

import numpy as np
import pytest

import whosin as wi
from whosin.errors import CalibrationError, ImplicationError, InputError, InputTypeError, WhosinError, check_whole

NAN, INF = math.nan, math.inf

WRONG_KIND = [None, "1", True, [0.5]]


def refuse(*values):
    """The values, each with InputError, and everything that is no number, with InputTypeError."""
    return [*((value, InputError) for value in values), *((value, InputTypeError) for value in WRONG_KIND)]


REFUSED = {
    "any finite": refuse(INF, -INF, NAN),
    "nonnegative": refuse(-1.0, -1e-300, -INF, NAN),
    "finite": refuse(-1.0, INF, -INF, NAN),
    "positive": refuse(0.0, -1.0, INF, NAN),
    "probability": refuse(-0.1, 1.1, 1.0 + 1e-15, INF, -INF, NAN),
    "prior": refuse(0, 1, 0.0, 1.0, -0.1, 1.1, INF, -INF, NAN),
    "share": refuse(0.0, -0.1, 1.1, INF, NAN),
    "whole": refuse(-1, 1.5, INF, NAN),
    "rates": [  # one rate, or an array of them
        *((value, InputError) for value in (-0.1, 1.1, INF, -INF, NAN, [0.5, -0.1], [NAN])),
        *((value, InputTypeError) for value in (None, "x", "0.5", True, 1j, {}, [None], ["0.5"], [[0.1, 0.2], [0.3]])),
    ],
}

TWO = wi.worlds.uniform_subsets("abcd", 2)
GAME = TWO.play(lambda records: {"yes" if "a" in records else "no": 1.0})
LOUD = wi.worlds.uniform_subsets(range(4), 2).play(wi.mechanisms.Laplace(sum, 1.0))
CURVE, SMOOTH = wi.PureDP(1.0).roc, wi.GaussianDP(1.0).roc
GUARANTEES = [
    wi.PureDP(1.0),
    wi.ApproxDP(1.0, 1e-5),
    wi.GaussianDP(1.0),
    wi.DPSGD(1.0, 0.1, 1),
    wi.PMP(1.0),
    wi.MIP(0.1),
    wi.MembershipPrivacy(2.0),
    wi.DifferentialIdentifiability(0.5, 3),
]
RISKS = [
    wi.risks.accuracy,
    wi.risks.advantage,
    wi.risks.advantage_at_prior,
    wi.risks.am,
    wi.risks.npv,
    wi.risks.ppv,
    wi.risks.tpr_at_fpr(0.1),
    wi.risks.ppv_at_fpr(0.1),
    wi.risks.weighted_accuracy(0.1),
]
calibrate, mechanisms, risks, worlds = wi.calibrate, wi.mechanisms, wi.risks, wi.worlds

# --- the first table: where, a callable of one value, the argument's name, its kind ------------------------------

NUMERIC = [
    ("PureDP", lambda v: wi.PureDP(v), "epsilon", "nonnegative"),
    ("ApproxDP", lambda v: wi.ApproxDP(v, 0.1), "epsilon", "nonnegative"),
    ("ApproxDP", lambda v: wi.ApproxDP(1.0, v), "delta", "probability"),
    ("GaussianDP", lambda v: wi.GaussianDP(v), "mu", "nonnegative"),
    ("DPSGD", lambda v: wi.DPSGD(v, 0.1, 5), "noise_multiplier", "nonnegative"),
    ("DPSGD", lambda v: wi.DPSGD(1.0, v, 5), "sample_rate", "probability"),
    ("DPSGD", lambda v: wi.DPSGD(1.0, 0.1, v), "steps", "whole"),
    ("PMP", lambda v: wi.PMP(v), "epsilon", "nonnegative"),
    ("PMP", lambda v: wi.PMP(1.0, v), "delta", "probability"),
    ("PMP", lambda v: wi.PMP(1.0, 0.0, v), "train_fraction", "prior"),
    ("MIP", lambda v: wi.MIP(0.1, v), "train_fraction", "prior"),
    ("Identifiability", lambda v: wi.DifferentialIdentifiability(v, 3), "rho", "probability"),
    ("Identifiability", lambda v: wi.DifferentialIdentifiability(0.5, v), "candidates", "whole"),
    *(
        (f"{type(g).__name__}.{method}", call, name, kind)
        for g in GUARANTEES
        for method, call, name, kind in (
            ("accuracy", g.accuracy, "prior", "prior"),
            ("posterior", g.posterior, "prior", "prior"),
            ("explain", g.explain, "prior", "prior"),
            ("risk", lambda v, g=g: g.risk("advantage", v), "prior", "prior"),
            ("tpr_at", g.tpr_at, "fpr", "rates"),
        )
    ),
    ("PureDP.posterior, fixed size", lambda v: wi.PureDP(1).posterior(v, world="fixed_size"), "prior", "prior"),
    ("Roc", lambda v: wi.Roc(v, [0.5]), "fpr", "rates"),
    ("Roc", lambda v: wi.Roc([0.5], v), "tpr", "rates"),
    *(
        (f"{kind} Roc.{method}", call, name, values)
        for kind, roc in (("linear", CURVE), ("smooth", SMOOTH))
        for method, call, name, values in (
            ("tpr", roc.tpr, "fpr", "rates"),
            ("fpr", roc.fpr, "tpr", "rates"),
            ("divergence", roc.divergence, "gamma", "nonnegative"),
            ("slope_for", roc.slope_for, "delta", "probability"),
            ("dominates", lambda v, roc=roc: roc.dominates(roc, v), "tolerance", "nonnegative"),
        )
    ),
    ("Roc.to_dict", SMOOTH.to_dict, "points", "whole"),
    ("from_likelihoods", lambda v: wi.Roc.from_likelihoods(v, [1.0]), "inside", "rates"),
    ("from_likelihoods", lambda v: wi.Roc.from_likelihoods([1.0], v), "outside", "rates"),
    *((f"risk {i}", lambda v, risk=risk: risk(CURVE, v), "prior", "prior") for i, risk in enumerate(RISKS)),
    ("tpr_at_fpr", risks.tpr_at_fpr, "fpr", "probability"),
    ("ppv_at_fpr", risks.ppv_at_fpr, "fpr", "share"),
    ("weighted_accuracy", risks.weighted_accuracy, "member_weight", "prior"),
    ("RatioMetric", lambda v: risks.RatioMetric((0, v, 0, 0, 1), (1, 0, 0, 0, 0)), "a[1]", "any finite"),
    ("RatioMetric", lambda v: risks.RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, v)), "b[4]", "any finite"),
    ("RatioMetric()", lambda v: risks.RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0))(CURVE, v), "prior", "prior"),
    ("bounds.table", wi.bounds.table, "epsilon", "nonnegative"),
    ("bounds.table", lambda v: wi.bounds.table(1.0, v), "delta", "probability"),
    ("bounds.table", lambda v: wi.bounds.table(1.0, 0.0, v), "prior", "prior"),
    ("bounds.table", lambda v: wi.bounds.table(1.0, fpr=v), "fpr", "share"),
    ("calibrate.epsilon", lambda v: calibrate.epsilon(accuracy=0.6, prior=v), "prior", "prior"),
    ("calibrate.epsilon", lambda v: calibrate.epsilon(accuracy=0.6, delta=v), "delta", "probability"),
    ("calibrate.epsilon", lambda v: calibrate.epsilon(tpr_at=(v, 0.1)), "tpr_at[0]", "probability"),
    ("calibrate.epsilon", lambda v: calibrate.epsilon(tpr_at=(0.1, v)), "tpr_at[1]", "probability"),
    ("calibrate.mip", lambda v: calibrate.mip(accuracy=0.6, train_fraction=v), "train_fraction", "prior"),
    ("calibrate.zcdp", lambda v: calibrate.zcdp(accuracy=0.6, prior=v), "prior", "prior"),
    ("calibrate.rdp", lambda v: calibrate.rdp(8.0, accuracy=0.6, prior=v), "prior", "prior"),
    ("calibrate.sampling_rate", lambda v: calibrate.sampling_rate(v, posterior=0.5), "epsilon", "nonnegative"),
    ("calibrate.sampling_rate", lambda v: calibrate.sampling_rate(1.0, posterior=v), "posterior", "share"),
    ("calibrate.dpsgd", lambda v: calibrate.dpsgd(v, 5, advantage=0.1), "sample_rate", "probability"),
    ("calibrate.dpsgd", lambda v: calibrate.dpsgd(0.1, v, advantage=0.1), "steps", "whole"),
    ("calibrate.dpsgd", lambda v: calibrate.dpsgd(0.1, 5, advantage=0.1, prior=v), "prior", "prior"),
    ("uniform_subsets", lambda v: worlds.uniform_subsets("abc", v), "size", "whole"),
    ("bounded_independent", lambda v: worlds.bounded_independent("abc", 0.5, v), "size", "whole"),
    ("bounded_independent", lambda v: worlds.bounded_independent("abc", v, 1), "probabilities", "rates"),
    ("independent", lambda v: worlds.independent("abc", v), "probabilities", "rates"),
    ("one_of_two", lambda v: worlds.one_of_two("ab", "a", "b", probability=v), "probability", "prior"),
    ("explicit", lambda v: worlds.explicit("ab", {"a": v}), "table", "probability"),
    ("game.pmp", GAME.pmp, "delta", "probability"),
    ("game.dp", GAME.dp, "delta", "probability"),
    ("continuous game.pmp", LOUD.pmp, "delta", "probability"),
    ("continuous game.dp", LOUD.dp, "delta", "probability"),
    ("continuous game.posterior", lambda v: LOUD.posterior(0, v), "output", "any finite"),
    ("RandomizedResponse", lambda v: mechanisms.RandomizedResponse(any, v), "epsilon", "nonnegative"),
    ("RandomizedResponse", lambda v: mechanisms.RandomizedResponse(any, 1.0, v), "delta", "probability"),
    ("Exponential", lambda v: mechanisms.Exponential("ab", lambda w, x: 0.0, v), "scale", "finite"),
    ("KMax", lambda v: mechanisms.KMax("abc", v), "k", "whole"),
    ("Subsampled", lambda v: mechanisms.Subsampled(lambda r: {0: 1.0}, v), "rate", "probability"),
    ("Laplace", lambda v: mechanisms.Laplace(sum, v), "scale", "positive"),
    ("Gaussian", lambda v: mechanisms.Gaussian(sum, v), "scale", "positive"),
]

# --- the second table: limits of their own, and arguments for which None means "not given" -----------------------

TARGETS = [(value, error) for value, error in REFUSED["probability"] if value is not None]
OWN_LIMITS = [
    ("MIP", wi.MIP, "eta", refuse(-0.1, 0.51, INF, NAN)),
    ("MembershipPrivacy", wi.MembershipPrivacy, "gamma", refuse(0.99, -1.0, -INF, NAN)),
    ("MembershipPrivacy", lambda v: wi.MembershipPrivacy(0.9, v), "gamma", [("uniform", InputError)]),
    ("Identifiability", lambda v: wi.DifferentialIdentifiability(v, 3), "rho", [(0.33, InputError), (0.0, InputError)]),
    (
        "Identifiability",
        lambda v: wi.DifferentialIdentifiability(0.9, v),
        "candidates",
        [(1, InputError), (0, InputError)],
    ),
    ("uniform_subsets", lambda v: worlds.uniform_subsets("abc", v), "size", [(4, InputError)]),
    ("bounded_independent", lambda v: worlds.bounded_independent("abc", 0.5, v), "size", [(4, InputError)]),
    ("KMax", lambda v: mechanisms.KMax("abc", v), "k", [(0, InputError), (1, InputError), (4, InputError)]),
    *(
        (f"calibrate.{function.__name__}", lambda v, f=function, t=target: f(**{t: v}), target, TARGETS)
        for function, targets in (
            (calibrate.epsilon, ("accuracy", "advantage", "posterior")),
            (calibrate.mip, ("accuracy", "advantage")),
            (calibrate.zcdp, ("accuracy", "advantage")),
        )
        for target in targets
    ),
    *(
        ("calibrate.dpsgd", lambda v, t=target: calibrate.dpsgd(0.1, 5, **{t: v}), target, TARGETS)
        for target in ("accuracy", "advantage")
    ),
    *(
        (f"{type(g).__name__} implies", lambda v, g=g, t=t, p=p: g.implies(t, **{p: v}), p, bad)
        for g, t, p, bad in (
            (wi.PureDP(1.0), wi.MIP, "train_fraction", REFUSED["prior"]),
            (wi.GaussianDP(1.0), wi.MIP, "train_fraction", REFUSED["prior"]),
            (wi.PureDP(1.0), wi.PMP, "train_fraction", REFUSED["prior"]),
            (wi.PureDP(1.0), wi.PMP, "delta", TARGETS),
            (wi.PureDP(1.0), wi.ApproxDP, "delta", TARGETS),
            (wi.ApproxDP(1.0, 0.1), wi.ApproxDP, "delta", TARGETS),
            (wi.PureDP(1.0), wi.PureDP, "sample_rate", TARGETS),
            (wi.GaussianDP(1.0), wi.ApproxDP, "delta", TARGETS),
            (wi.DPSGD(1.0, 0.1, 1), wi.ApproxDP, "delta", TARGETS),
            (wi.PMP(1.0), wi.PMP, "delta", TARGETS),
            (wi.MIP(0.1), wi.PMP, "delta", TARGETS),
            (wi.PureDP(1.0), wi.DifferentialIdentifiability, "candidates", [*REFUSED["whole"], (1, InputError)]),
        )
    ),
]


def names(message, value):
    """Whether a message shows the value, or the first wrong item of an array."""
    items = value if isinstance(value, list) else [value]
    return any(text in message for item in [value, *items] for text in (repr(item), str(item)) if text)


def complaints(call, name, value, error):
    """What is wrong with the way in which a call refuses a value; nothing if it is right."""
    try:
        call(value)
    except error as caught:
        message = str(caught)
        if name not in message:
            yield f"{name}={value!r}: the message does not name the argument: {message}"
        if not names(message, value) and (name, value) != ("gamma", "uniform"):
            yield f"{name}={value!r}: the message does not show the value: {message}"
    except Exception as caught:
        yield f"{name}={value!r}: {type(caught).__name__} instead of {error.__name__}: {caught}"
    else:
        yield f"{name}={value!r}: taken"


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [pytest.param(call, name, kind, id=f"{where} {name}") for where, call, name, kind in [*NUMERIC, *OWN_LIMITS]],
)
def test_numbers(call, name, kind):
    refused = REFUSED[kind] if isinstance(kind, str) else kind
    assert refused
    assert not [line for value, error in refused for line in complaints(call, name, value, error)]


def test_the_loop_sees_what_is_wrong():
    def refuse_badly(value):
        raise InputError("no")

    assert [*complaints(float, "x", 1.0, InputError)] == ["x=1.0: taken"]
    assert len([*complaints(refuse_badly, "x", 1.5, InputError)]) == 2
    assert "InputError instead of InputTypeError" in next(complaints(refuse_badly, "x", 1.5, InputTypeError))


# --- the third table: what is particular to one callable ----------------------------------------------------------

ONE = {0: 1.0}


def play(law):
    return TWO.play(lambda records: law)


OTHERS = [
    # curves
    ("no points", lambda: wi.Roc([], []), InputError, "fpr", "tpr", "(0,)"),
    ("points in a table", lambda: wi.Roc([[0.1]], [[0.2]]), InputError, "fpr", "tpr", "(1, 1)"),
    ("numbers for points", lambda: wi.Roc(0.1, 0.2), InputError, "fpr", "tpr", "()"),
    ("unequal lengths", lambda: wi.Roc([0.1], [0.2, 0.3]), InputError, "fpr", "tpr", "(1,)", "(2,)"),
    ("a falling curve", lambda: wi.Roc([0.1, 0.5], [0.625, 0.25]), InputError, "tpr", "0.25"),
    ("a falling curve, unsorted", lambda: wi.Roc([0.5, 0.1], [0.25, 0.625]), InputError, "tpr", "0.25"),
    ("no outputs", lambda: wi.Roc.from_likelihoods([], []), InputError, "inside", "outside", "(0,)"),
    ("unequal laws", lambda: wi.Roc.from_likelihoods([1.0], [0.5, 0.5]), InputError, "inside", "(1,)", "(2,)"),
    ("inside short of one", lambda: wi.Roc.from_likelihoods([0.5, 0.25], [0.5, 0.5]), InputError, "inside", "0.75"),
    ("outside above one", lambda: wi.Roc.from_likelihoods([0.5, 0.5], [0.75, 0.75]), InputError, "outside", "1.5"),
    ("laws in a table", lambda: wi.Roc.from_likelihoods([[1.0]], [[1.0]]), InputError, "inside", "(1, 1)"),
    ("symmetrised, smooth", SMOOTH.symmetrised, InputError, "symmetrised", "smooth"),
    ("compose, smooth", lambda: CURVE.compose(SMOOTH), InputError, "compose", "smooth"),
    ("compose on smooth", lambda: SMOOTH.compose(CURVE), InputError, "compose", "smooth"),
    ("scale of a picture", lambda: CURVE.plot(scale="cubic"), InputError, "scale", "'cubic'"),
    ("scale of a plot", lambda: CURVE.plot(scale=None), InputError, "scale", "None"),
    # risks
    ("unknown metric", lambda: wi.PureDP(1.0).risk("recall"), InputError, "metric", "'recall'"),
    ("metric 3", lambda: wi.PureDP(1.0).risk(3), InputTypeError, "metric", "3"),
    ("metric None", lambda: wi.PureDP(1.0).risk(None), InputTypeError, "metric", "None"),
    ("metric list", lambda: risks.resolve(["ppv"]), InputTypeError, "metric", "['ppv']"),
    ("four weights", lambda: risks.RatioMetric((1, 2, 3, 4), (1, 0, 0, 0, 0)), InputError, "a ", "five", "4"),
    ("six weights", lambda: risks.RatioMetric((1, 0, 0, 0, 0), range(6)), InputError, "b ", "five", "6"),
    ("no weights", lambda: risks.RatioMetric(1.0, (1, 0, 0, 0, 0)), InputTypeError, "a ", "five", "1.0"),
    (
        "a denominator that vanishes",
        lambda: risks.RatioMetric((0, 1, 0, 0, 1), (0, 0, 0, 0, 0))(CURVE, 0.5),
        InputError,
        "b ",
        "(0.0, 0.0, 0.0, 0.0, 0.0)",
    ),
    (
        "a denominator below zero",
        lambda: risks.RatioMetric((0, 1, 0, 0, 1), (0, 1, -1, 0, 0))(SMOOTH, 0.5),
        InputError,
        "b ",
        "-1.0",
    ),
    # choices
    *(
        (
            f"adjacency {bad!r} of {cls.__name__}",
            lambda c=cls, a=args, v=bad: c(*a, v),
            InputError,
            "adjacency",
            repr(bad),
        )
        for cls, args in ((wi.PureDP, (1.0,)), (wi.ApproxDP, (1.0, 0.1)), (wi.GaussianDP, (1.0,)))
        for bad in ("swap", "", "ADD_REMOVE", None, 1, ["replace"], np.array(["add_remove", "replace"]))
    ),
    *(
        (f"family {bad!r}", lambda v=bad: wi.MembershipPrivacy(2.0, v), InputError, "family", repr(bad))
        for bad in ("all", None, 3, ["uniform"])
    ),
    *(
        (
            f"negative {bad!r}",
            lambda v=bad: wi.MembershipPrivacy(2.0, negative=v),
            InputTypeError,
            "negative",
            repr(bad),
        )
        for bad in ("yes", None, 1, 0.0)
    ),
    ("game negative", lambda: GAME.membership_privacy(negative="no"), InputTypeError, "negative", "'no'"),
    ("world of a posterior", lambda: wi.PureDP(1.0).posterior(0.5, world="x"), InputError, "world", "'x'"),
    ("empty of k-Max", lambda: mechanisms.KMax("abc", 2, empty="high"), InputError, "empty", "'high'"),
    ("quantity of a table", lambda: wi.bounds.table(1.0).tightest("recall"), InputError, "quantity", "'recall'"),
    # implications
    ("implies a name", lambda: wi.PureDP(1.0).implies("MIP"), InputTypeError, "target", "'MIP'"),
    ("implies None", lambda: wi.PureDP(1.0).implies(None), InputTypeError, "target", "None"),
    ("implies a number type", lambda: wi.PureDP(1.0).implies(float), InputTypeError, "target", "float"),
    ("implies an instance", lambda: wi.PureDP(1.0).implies(wi.MIP(0.1)), InputTypeError, "target", "MIP(eta=0.1"),
    ("unknown parameter", lambda: wi.PureDP(1.0).implies(wi.MIP, prior=0.5), TypeError, "'prior'", "train_fraction"),
    ("parameter of another", lambda: wi.PMP(1.0).implies(wi.MIP, delta=0.5), TypeError, "'delta'"),
    ("through a third", lambda: wi.MembershipPrivacy(2.0, "bounded").implies(wi.MIP, prior=0.5), TypeError, "'prior'"),
    ("no delta", lambda: wi.GaussianDP(1.0).implies(wi.ApproxDP), InputError, "delta", "GaussianDP"),
    ("no delta for PMP", lambda: wi.DPSGD(1.0, 0.1, 1).implies(wi.PMP), InputError, "delta", "DPSGD"),
    ("no candidates", lambda: wi.PureDP(1.0).implies(wi.DifferentialIdentifiability), TypeError, "candidates"),
    ("adjacency", lambda: wi.PureDP(1.0).implies(wi.PureDP, adjacency="swap"), InputError, "adjacency", "'swap'"),
    ("family", lambda: wi.PureDP(1.0).implies(wi.MembershipPrivacy, family="all"), InputError, "family", "'all'"),
    (
        "one prior",
        lambda: wi.PureDP(1.0).implies(wi.MembershipPrivacy, family="prior"),
        InputError,
        "family",
        "'prior'",
    ),
    (
        "delta and sampling",
        lambda: wi.ApproxDP(1.0, 0.1).implies(wi.ApproxDP, delta=0.1, sample_rate=0.5),
        InputError,
        "delta",
        "sample_rate",
    ),
    ("replace posterior", lambda: wi.PureDP(1.0, "replace").posterior(0.5), ImplicationError, "|D|", "fixed_size"),
    # calibration
    *(
        (f"no target of {function.__name__}", lambda f=function, a=args: f(*a), TypeError, "exactly one", "none")
        for function, args in ((calibrate.epsilon, ()), (calibrate.mip, ()), (calibrate.dpsgd, (0.1, 5)))
    ),
    *(
        (
            f"two targets of {function.__name__}",
            lambda f=function, a=args: f(*a, accuracy=0.6, advantage=0.1),
            TypeError,
            "exactly one",
            "accuracy, advantage",
        )
        for function, args in ((calibrate.epsilon, ()), (calibrate.mip, ()), (calibrate.dpsgd, (0.1, 5)))
    ),
    ("half a pair", lambda: calibrate.epsilon(tpr_at=0.5), InputTypeError, "tpr_at", "0.5"),
    ("three of a pair", lambda: calibrate.mip(tpr_at=(0.1, 0.2, 0.3)), InputTypeError, "tpr_at", "(0.1, 0.2, 0.3)"),
    ("letters", lambda: calibrate.dpsgd(0.1, 5, tpr_at="ab"), InputTypeError, "tpr_at", "'a'"),
    ("no posterior", lambda: calibrate.sampling_rate(1.0), TypeError, "posterior"),
    ("target by position", lambda: calibrate.epsilon(0.6), TypeError, "positional"),
    ("below blind", lambda: calibrate.epsilon(accuracy=0.4), CalibrationError, "accuracy", "0.4", "0.5"),
    ("posterior with δ", lambda: calibrate.epsilon(posterior=0.6, delta=1e-5), CalibrationError, "posterior", "1e-05"),
    ("not by noise", lambda: calibrate.dpsgd(0.1, 5, advantage=0.0), CalibrationError, "advantage", "0"),
    ("no share", lambda: calibrate.sampling_rate(INF, posterior=0.5), CalibrationError, "posterior", "0.5", "inf"),
    # universes
    *(
        (f"{name} of {kind}", lambda f=function, u=universe: f(u), error, "universe", *shown)
        for name, function in (
            ("uniform_subsets", lambda u: worlds.uniform_subsets(u, 1)),
            ("independent", lambda u: worlds.independent(u, 0.5)),
            ("bounded_independent", lambda u: worlds.bounded_independent(u, 0.5, 1)),
            ("all_subsets", worlds.all_subsets),
            ("one_of_two", lambda u: worlds.one_of_two(u, "a", "b")),
            ("explicit", lambda u: worlds.explicit(u, {"a": 1.0})),
        )
        for kind, universe, error, *shown in (
            ("nobody", [], InputError, "none"),
            ("None", None, InputTypeError, "None"),
            ("a number", 5, InputTypeError, "5"),
            ("lists", ["a", [1, 2]], InputTypeError, "[1, 2]", "position 1"),
            ("dicts", [{"age": 3}], InputTypeError, "{'age': 3}", "position 0"),
            ("arrays", list(np.eye(2)), InputTypeError, "array([1., 0.])", "position 0"),
        )
    ),
    ("too many subsets", lambda: worlds.all_subsets(range(22)), InputError, "universe", "2097152", "4194304"),
    ("too many halves", lambda: worlds.uniform_subsets(range(24), 12), InputError, "universe", "2097152", "2704156"),
    ("probabilities too few", lambda: worlds.independent("abc", [0.5]), InputError, "probabilities", "3", "(1,)"),
    ("probabilities none", lambda: worlds.independent("abc", []), InputError, "probabilities", "3", "(0,)"),
    ("probabilities 2-d", lambda: worlds.independent("abc", [[0.5] * 3]), InputError, "probabilities", "(1, 3)"),
    ("no such size", lambda: worlds.bounded_independent("abc", [1, 1, 0], 1), InputError, "size", "1", "allow"),
    ("first twice", lambda: worlds.one_of_two("abc", "a", "a"), InputError, "first", "second"),
    ("first certain", lambda: worlds.one_of_two("abc", "a", "b", ["a"]), InputError, "first", "certain"),
    ("certain twice", lambda: worlds.one_of_two("abcd", "a", "b", ["c", "c"]), InputError, "certain", "'c'"),
    ("certain a number", lambda: worlds.one_of_two("abc", "a", "b", 5), InputTypeError, "certain", "5"),
    ("first unknown", lambda: worlds.one_of_two("abc", "z", "b"), InputError, "record", "'z'"),
    ("empty table", lambda: worlds.explicit("ab", {}), InputError, "table", "0"),
    ("table short of one", lambda: worlds.explicit("ab", {"a": 0.5}), InputError, "table", "0.5"),
    ("table with repeats", lambda: worlds.explicit("ab", {"aa": 1.0}), InputError, "table", "'aa'"),
    ("table with strangers", lambda: worlds.explicit("ab", {"z": 1.0}), InputError, "'z'"),
    ("table of numbers", lambda: worlds.explicit("ab", {5: 1.0}), InputTypeError, "table", "5"),
    ("a list for a table", lambda: worlds.explicit("ab", [("a", 1.0)]), InputTypeError, "table", "('a', 1.0)"),
    ("None for a table", lambda: worlds.explicit("ab", None), InputTypeError, "table", "None"),
    # mechanisms of one's own
    *(
        (f"mechanism {bad!r}", lambda v=bad: TWO.play(v), InputTypeError, "mechanism", repr(bad))
        for bad in (None, 5, "sum", {0: 1.0}, [0.5, 0.5])
    ),
    ("law None", lambda: play(None), InputTypeError, "mechanism", "NoneType", "('a', 'b')"),
    ("law list", lambda: play([1.0]), InputTypeError, "mechanism", "list", "('a', 'b')"),
    ("law number", lambda: play(1.0), InputTypeError, "mechanism", "float", "('a', 'b')"),
    ("law empty", lambda: play({}), InputError, "mechanism", "sum", "0.0", "('a', 'b')"),
    ("law short", lambda: play({0: 0.5, 1: 0.25}), InputError, "mechanism", "0.75", "('a', 'b')"),
    ("law long", lambda: play({0: 0.5, 1: 0.75}), InputError, "mechanism", "1.25", "('a', 'b')"),
    ("law negative", lambda: play({0: 1.5, 1: -0.5}), InputError, "mechanism", "1.5", "('a', 'b')"),
    ("law below zero", lambda: play({"x": -0.25, "y": 1.0, "z": 0.25}), InputError, "mechanism", "-0.25", "'x'"),
    ("law nan", lambda: play({"x": NAN, "y": 1.0}), InputError, "mechanism", "nan", "'x'", "('a', 'b')"),
    ("law inf", lambda: play({"x": INF}), InputError, "mechanism", "inf", "'x'", "('a', 'b')"),
    ("law text", lambda: play({"x": "half"}), InputTypeError, "mechanism", "'half'", "('a', 'b')"),
    ("law digits", lambda: play({"x": "1"}), InputTypeError, "mechanism", "'1'", "('a', 'b')"),
    ("law without number", lambda: play({"x": None}), InputTypeError, "mechanism", "None", "('a', 'b')"),
    ("law complex", lambda: play({"x": 1j}), InputTypeError, "mechanism", "1j", "('a', 'b')"),
    (
        "law on one data set only",
        lambda: TWO.play(lambda records: {0: 0.5} if records == ("c", "d") else ONE),
        InputError,
        "mechanism",
        "0.5",
        "('c', 'd')",
    ),
    (
        "the mechanism inside Subsampled",
        lambda: TWO.play(mechanisms.Subsampled(lambda records: {0: 0.5}, 0.5)),
        InputError,
        "mechanism",
        "0.5",
    ),
    ("Subsampled None", lambda: mechanisms.Subsampled(None, 0.5), InputTypeError, "mechanism", "None"),
    ("question None", lambda: mechanisms.RandomizedResponse(None, 1.0), InputTypeError, "question", "None"),
    ("query None", lambda: mechanisms.Laplace(None, 1.0), InputTypeError, "query", "None"),
    ("query nan", lambda: TWO.play(mechanisms.Laplace(lambda r: NAN, 1.0)), InputError, "query", "nan", "('a', 'b')"),
    ("query inf", lambda: TWO.play(mechanisms.Gaussian(lambda r: INF, 1.0)), InputError, "query", "inf", "('a', 'b')"),
    (
        "query None value",
        lambda: TWO.play(mechanisms.Laplace(lambda r: None, 1.0)),
        InputTypeError,
        "query",
        "None",
        "('a', 'b')",
    ),
    (
        "query text",
        lambda: TWO.play(mechanisms.Laplace(lambda r: "half", 1.0)),
        InputTypeError,
        "query",
        "'half'",
        "('a', 'b')",
    ),
    (
        "query of two numbers",
        lambda: TWO.play(mechanisms.Gaussian(lambda r: np.zeros(2), 1.0)),
        InputTypeError,
        "query",
        "array([0., 0.])",
        "('a', 'b')",
    ),
    (
        "candidates none",
        lambda: mechanisms.Exponential([], lambda w, x: 0.0, 1.0),
        InputError,
        "candidates",
        "at least one",
    ),
    ("candidates twice", lambda: mechanisms.Exponential("aa", lambda w, x: 0.0, 1.0), InputError, "candidates", "'a'"),
    (
        "candidates None",
        lambda: mechanisms.Exponential(None, lambda w, x: 0.0, 1.0),
        InputTypeError,
        "candidates",
        "None",
    ),
    (
        "candidates lists",
        lambda: mechanisms.Exponential([[1]], lambda w, x: 0.0, 1.0),
        InputTypeError,
        "candidates",
        "[1]",
    ),
    ("loss None", lambda: mechanisms.Exponential("ab", None, 1.0), InputTypeError, "loss", "None"),
    ("loss nan", lambda: TWO.play(mechanisms.Exponential("xy", lambda w, x: NAN, 1.0)), InputError, "loss", "nan"),
    (
        "loss text",
        lambda: TWO.play(mechanisms.Exponential("xy", lambda w, x: "much", 1.0)),
        InputTypeError,
        "loss",
        "'much'",
    ),
    ("k-Max of nobody", lambda: mechanisms.KMax([], 2), InputError, "universe", "none"),
    ("k-Max of None", lambda: mechanisms.KMax(None, 2), InputTypeError, "universe", "None"),
    ("k-Max of lists", lambda: mechanisms.KMax([[1], [2]], 2), InputTypeError, "universe", "[1]"),
    ("k-Max with repeats", lambda: mechanisms.KMax("aab", 2), InputError, "universe", "'a'"),
    ("k-Max of a stranger", lambda: mechanisms.KMax("abc", 2).law(("z",)), InputError, "record", "'z'"),
    # games
    *(
        (f"game.{name} of {bad!r}", lambda f=function, v=bad: f(v), InputError, "record", repr(bad))
        for name, function in (
            ("roc", GAME.roc),
            ("accuracy", GAME.accuracy),
            ("advantage", GAME.advantage),
            ("posterior", lambda v: GAME.posterior(v, "yes")),
            ("posterior in noise", lambda v: LOUD.posterior(v, 0.0)),
            ("roc in noise", LOUD.roc),
        )
        for bad in ("z", None, ["a"], ("a",))
    ),
    ("output unknown", lambda: GAME.posterior("a", "maybe"), InputError, "output", "'maybe'"),
    ("output a list", lambda: GAME.posterior("a", ["yes"]), InputError, "output", "['yes']"),
    ("prior of a game", lambda: GAME.accuracy("a", 0.0), InputError, "prior", "0.0"),
    ("prior of a game, text", lambda: GAME.accuracy("a", "half"), InputTypeError, "prior", "'half'"),
    (
        "output that never comes",
        lambda: worlds.explicit("ab", {"a": 1.0}).play(lambda r: {0: 1.0, 1: 0.0}).posterior("a", 1),
        InputError,
        "output",
        "1",
        "can occur",
    ),
    (
        "a record that is surely in",
        lambda: worlds.independent("ab", [1.0, 0.5]).play(lambda r: ONE).accuracy("a"),
        InputError,
        "record",
        "'a'",
        "surely in",
    ),
    (
        "a record that is surely out",
        lambda: worlds.independent("ab", [0.5, 0.0]).play(lambda r: ONE).roc("b"),
        InputError,
        "record",
        "'b'",
        "surely out",
    ),
    (
        "a record twice",
        lambda: worlds.uniform_subsets("aab", 1).play(lambda r: ONE).accuracy("a"),
        InputError,
        "record",
        "'a'",
        "[0, 1]",
    ),
    *(
        (f"{notion} of {kind}", lambda w=world, n=name: getattr(w.play(lambda r: ONE), n)(), ImplicationError, notion)
        for notion, name in (("PMP", "pmp"), ("MIP", "mip"))
        for kind, world in (
            ("independent records", worlds.independent("ab", 0.5)),
            ("all subsets", worlds.all_subsets("ab")),
            ("one size, not uniform", worlds.bounded_independent("ab", [0.3, 0.5], 1)),
        )
    ),
    *(
        (f"{name} of {kind}", lambda w=world, n=name: getattr(w.play(lambda r: ONE), n)(), WhosinError)
        for name in ("pmp", "mip")
        for kind, world in (
            ("nobody drawn", worlds.uniform_subsets("ab", 0)),
            ("everybody drawn", worlds.uniform_subsets("ab", 2)),
        )
    ),
    *(
        (
            f"{type(g).__name__} with an array of priors",
            lambda g=g: g.accuracy(np.array([0.5])),
            InputTypeError,
            "prior",
        )
        for g in GUARANTEES
    ),
    ("an array for ε", lambda: wi.PureDP(np.array([1.0])), InputTypeError, "epsilon", "array([1.])"),
    ("a complex ε", lambda: wi.PureDP(1j), InputTypeError, "epsilon", "1j"),
    # numbers that no float holds
    ("an endless δ", lambda: wi.ApproxDP(1.0, 10**400), InputError, "delta"),
    ("an endless negative ε", lambda: wi.PureDP(-(10**400)), InputError, "epsilon"),
    ("endless steps", lambda: wi.DPSGD(1.0, 0.1, 10**400), InputError, "steps"),
    ("steps beyond any memory", lambda: wi.DPSGD(1.0, 0.1, 10**20).advantage, InputError, "steps"),
]


@pytest.mark.parametrize(
    ("call", "error", "fragments"), [pytest.param(call, error, rest, id=where) for where, call, error, *rest in OTHERS]
)
def test_others(call, error, fragments):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    for fragment in fragments:
        assert fragment in message


def test_errors_can_be_caught_the_usual_way():
    tree = {
        InputError: ValueError,
        InputTypeError: TypeError,
        ImplicationError: ValueError,
        CalibrationError: ValueError,
        wi.errors.MissingExtraError: ImportError,
    }
    for ours, theirs in tree.items():
        assert issubclass(ours, wi.errors.WhosinError)
        assert issubclass(ours, theirs)
    assert issubclass(wi.errors.AssumptionWarning, wi.errors.WhosinWarning)
    assert issubclass(wi.errors.WhosinWarning, UserWarning)


def test_whole_numbers_beyond_floats_count_as_infinite():
    assert wi.PureDP(10**400) == wi.PureDP(INF)


def test_messages_show_numbers_plainly():
    with pytest.raises(InputError) as caught:
        wi.PureDP(1.0).tpr_at(-0.1)
    assert "np.float64" not in str(caught.value)


def test_a_bad_value_leaves_no_half_made_object():
    with pytest.raises(TypeError):
        wi.ApproxDP(1.0)
    with pytest.raises(TypeError):
        wi.Guarantee()
    with pytest.raises(TypeError):
        wi.mechanisms.FiniteMechanism()
    with pytest.raises(TypeError):
        wi.mechanisms.AdditiveMechanism(sum, 1.0)


def test_large_whole_numbers_keep_their_last_digit():
    assert check_whole("capacity", 2**53 + 1) == 2**53 + 1
