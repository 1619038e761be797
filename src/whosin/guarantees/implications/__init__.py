"""Which guarantee follows from which: a graph of theorems.

An :class:`Edge` is one theorem: its source and target, who proved it, under which assumptions, whether it is tight
(some mechanism attains it), and whether it was corrected from the paper. :func:`implied` walks to the tightest
target, or raises an ImplicationError that names the counterexample (:class:`NoEdge`).

Two tools do most of the work. A fixed-size world (PMP, MIP, D_B, identifiability) compares data sets that differ by a
replacement, so the edges start from ``replace_roc()``. And by the adjacent coupling - D uniform among the sets that
hold x, x' uniform outside D, D' = D - x + x' - the laws given in and given out are mixtures of such pairs, so any
jointly convex divergence of theirs is at most that of the worst pair. This is why the curve carries over as it is.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

from whosin.errors import ImplicationError, InputTypeError
from whosin.guarantees.base import Guarantee
from whosin.guarantees.implications import beliefs, differential, practical
from whosin.guarantees.implications.graph import FORMS, NO_EDGES, Edge, NoEdge, no

__all__ = ["EDGES", "NO_EDGES", "Edge", "NoEdge", "implied"]

Target = TypeVar("Target", bound=Guarantee)

EDGES: tuple[Edge, ...] = (*differential.EDGES, *practical.EDGES, *beliefs.EDGES)


def implied(guarantee: Guarantee, target: type[Target], params: dict[str, Any]) -> Target:
    """Return the tightest guarantee of class ``target`` that follows from ``guarantee``."""
    if not (isinstance(target, type) and issubclass(target, Guarantee)):
        raise InputTypeError(f"target must be a class of guarantees such as MIP, got {target!r}")
    source, wanted = type(guarantee).__name__, target.__name__
    for edge in EDGES:
        if edge.source == source and edge.target == wanted:
            _check_params(edge, params)
            return cast(Target, edge.derive(guarantee, **params))
    if source == wanted:
        if params:
            raise InputTypeError(f"implies({wanted}) from {source} must have no parameters; got {next(iter(params))!r}")
        return cast(Target, guarantee)
    if wanted in FORMS:
        raise ImplicationError(
            f"{source} is not turned into {wanted}, which is a form in which accountants state a curve: read the curve "
            "off .roc, or ask for ApproxDP"
        )
    raise no(source, wanted)


def _check_params(edge: Edge, params: dict[str, Any]) -> None:
    signature = list(inspect.signature(edge.derive).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature):
        return
    known = [parameter.name for parameter in signature]
    unknown = [name for name in params if name not in known]
    if unknown:
        accepted = ", ".join(known) or "no parameters"
        raise InputTypeError(f"implies({edge.target}) from {edge.source} accepts {accepted}; got {unknown[0]!r}")
    needed = [each.name for each in signature if each.default is each.empty and each.name not in params]
    if needed:
        raise InputTypeError(f"implies({edge.target}) from {edge.source} needs {needed[0]}=, got none")
