"""From accountants to guarantees: dp-accounting's distributions and events (JAX-privacy's too), and Opacus' history.

An event tells which mechanisms ran, so it is read here, not sent through one accountant: Gaussian, sampled and
fixed-size steps by their exact pairs (:class:`whosin.DPSGD`), other mechanisms by dp-accounting's privacy loss
distribution, the rest by its Rényi accountant. That one leaves out the factor 2 of replacing a record, so it is never
asked about replacement: two steps are paid instead.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from whosin.errors import InputError, InputTypeError, check_choice
from whosin.guarantees.composition import profile_of_laws, together
from whosin.guarantees.dp import ADJACENCIES, Adjacency, ApproxDP, DifferentialPrivacy, GaussianDP, PureDP
from whosin.guarantees.profile import PrivacyProfile, TradeOff
from whosin.guarantees.renyi import RenyiDP, ZeroConcentratedDP
from whosin.guarantees.sgd import DPSGD

_ORDERS = (*(1.0 + x / 10.0 for x in range(1, 100)), *range(11, 64), 80, 128, 256, 512, 1024)


def from_pld(pld: Any, adjacency: Adjacency = "add_remove") -> PrivacyProfile:
    """Return the guarantee of a ``PrivacyLossDistribution`` of dp-accounting, both directions, at a thousand ε.

    Parameters
    ----------
    pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        A pessimistic one, as its constructors give by default.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What it compares; the distribution does not say.

    Examples
    --------
    >>> import whosin as wi
    >>> from dp_accounting.pld import privacy_loss_distribution as pld
    >>> promise = wi.from_pld(pld.from_laplace_mechanism(1.0))
    >>> round(promise.tpr_at(0.01), 4)
    0.0272
    """
    laws: tuple[Any, Any] = getattr(pld, "_pmf_remove", None), getattr(pld, "_pmf_add", None)
    if None in laws:
        raise InputTypeError(f"pld must be a PrivacyLossDistribution of dp-accounting, got {type(pld).__name__}")
    if not all(law._pessimistic_estimate for law in laws):
        raise InputError("pld must be a pessimistic estimate (an upper limit), got an optimistic one")
    check_choice("adjacency", adjacency, ADJACENCIES)
    inside = laws[0].to_dense_pmf()
    return profile_of_laws(inside, inside if laws[1] is laws[0] else laws[1].to_dense_pmf(), adjacency)


def from_event(event: Any, adjacency: Adjacency = "add_remove") -> DifferentialPrivacy:
    """Return the guarantee of a ``DpEvent`` of dp-accounting, which JAX-privacy and TensorFlow Privacy give too.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Noise multipliers are those over the clipping norm, for every adjacency: the factor 2 of a replacement is
        applied here.
    adjacency : {"add_remove", "replace", "zero_out"}, default "add_remove"
        What is to be compared.

    Raises
    ------
    InputError
        For an event that neither this library nor dp-accounting can account for.

    Examples
    --------
    >>> import dp_accounting as da, whosin as wi
    >>> step = da.PoissonSampledDpEvent(0.01, da.GaussianDpEvent(1.0))
    >>> wi.from_event(da.SelfComposedDpEvent(step, 1000))
    DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=1000, sampling='poisson', adjacency='add_remove')
    """
    import dp_accounting as da

    if not isinstance(event, da.DpEvent):
        raise InputTypeError(f"event must be a DpEvent of dp-accounting, got {type(event).__name__}")
    check_choice("adjacency", adjacency, ADJACENCIES)
    return together((_one(leaf, count, adjacency) for leaf, count in _leaves(event, 1)), adjacency)


def from_opacus(accountant: Any, adjacency: Adjacency = "add_remove") -> DifferentialPrivacy:
    """Return the guarantee of an Opacus accountant, of its ``state_dict()``, or of its history.

    The history (noise multiplier, sample rate, steps) is all that is read: whichever accountant kept it, the answer is
    the exact pessimistic one. Opacus samples by Poisson unless it is told otherwise.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.from_opacus([(1.0, 0.01, 1000)])
    DPSGD(noise_multiplier=1.0, sample_rate=0.01, steps=1000, sampling='poisson', adjacency='add_remove')
    """
    history: Any = getattr(accountant, "history", accountant)
    if isinstance(accountant, Mapping):
        history = accountant.get("history")
    if isinstance(history, str) or not hasattr(history, "__iter__"):
        raise InputTypeError(
            f"accountant must be one of Opacus, its state_dict() or its history, got {type(accountant).__name__}"
        )
    runs: dict[tuple[float, float], int] = {}
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise InputError(f"history must hold (noise multiplier, sample rate, steps), got {entry!r}")
        runs[entry[0], entry[1]] = runs.get((entry[0], entry[1]), 0) + entry[2]
    parts = [DPSGD(noise, rate, steps, "poisson", adjacency) for (noise, rate), steps in runs.items()]
    return parts[0] if len(parts) == 1 else together(parts, check_choice("adjacency", adjacency, ADJACENCIES))


def _leaves(event: Any, count: int) -> Iterator[tuple[Any, int]]:
    """The events of which a composed one consists, equal ones that follow each other counted together."""
    import dp_accounting as da

    if isinstance(event, da.SelfComposedDpEvent):
        yield from _leaves(event.event, count * event.count)
    elif isinstance(event, da.ComposedDpEvent):
        for part in event.events:
            yield from _leaves(part, count)
    elif not isinstance(event, da.NoOpDpEvent) and count > 0:
        yield event, count


def _one(event: Any, count: int, adjacency: Adjacency) -> DifferentialPrivacy:
    """The guarantee of one event, run so many times."""
    import dp_accounting as da
    from dp_accounting import dp_event

    if isinstance(event, da.NonPrivateDpEvent):
        return PureDP(math.inf, adjacency)
    if isinstance(event, da.GaussianDpEvent):
        return GaussianDP(cast(float, DPSGD(event.noise_multiplier, 1.0, count, "poisson", adjacency).mu), adjacency)
    if isinstance(event, da.PoissonSampledDpEvent) and (noise := _noise(event.event)) is not None:
        return DPSGD(noise, event.sampling_probability, count, "poisson", adjacency)
    if isinstance(event, da.SampledWithoutReplacementDpEvent) and (noise := _noise(event.event)) is not None:
        return DPSGD(noise, event.sample_size / event.source_dataset_size, count, "fixed_size", adjacency)
    if isinstance(event, dp_event.ZCDpEvent) and event.xi == 0.0:
        return ZeroConcentratedDP(count * event.rho * (1.0 + 1e-15), adjacency)
    if isinstance(event, dp_event.ZCDpEvent):
        return RenyiDP(_ORDERS, [count * (event.xi + event.rho * a) * (1.0 + 1e-15) for a in _ORDERS], adjacency)
    return _accounted(da.SelfComposedDpEvent(event, count), adjacency)


def _noise(event: Any) -> float | None:
    """Noise multiplier of Gaussian releases on one batch: 1/σ² adds up; None for anything else."""
    import dp_accounting as da

    leaves = list(_leaves(event, 1))
    if not leaves or not all(isinstance(leaf, da.GaussianDpEvent) for leaf, _ in leaves):
        return None
    if any(leaf.noise_multiplier == 0.0 for leaf, _ in leaves):
        return 0.0
    if len(leaves) == 1 and leaves[0][1] == 1:
        return float(leaves[0][0].noise_multiplier)
    return (1.0 - 1e-15) / math.sqrt(math.fsum(count / leaf.noise_multiplier**2 for leaf, count in leaves))


def _accounted(event: Any, adjacency: Adjacency) -> DifferentialPrivacy:
    """By dp-accounting's accountants: the privacy loss distribution first; a replacement as two steps if need be."""
    import dp_accounting as da
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    named = da.NeighboringRelation
    relations = {
        "add_remove": named.ADD_OR_REMOVE_ONE,
        "replace": named.REPLACE_ONE,
        "zero_out": named.REPLACE_SPECIAL,
    }
    exact = PLDAccountant(relations[adjacency])
    if exact.supports(event):
        return _all_revealed(exact.compose(event), adjacency) or from_pld(exact._pld, adjacency)
    if adjacency == "replace":
        for through in cast(tuple[Adjacency, ...], ("zero_out", "add_remove")):
            try:
                found = _accounted(event, through)
            except InputError:
                continue
            return TradeOff(found.replace_roc(), "replace")
    moments = RdpAccountant(_ORDERS, relations[adjacency])
    if adjacency == "replace" or not moments.supports(event):
        raise InputError(f"event must be one that dp-accounting accounts for under {adjacency!r}, got {event!r}")
    return _all_revealed(moments.compose(event), adjacency) or RenyiDP(_ORDERS, moments._rdp.tolist(), adjacency)


def _all_revealed(accountant: Any, adjacency: Adjacency) -> DifferentialPrivacy | None:
    """A guarantee of nothing where a part of the event hides nothing."""
    nothing = accountant._contains_non_dp_event if hasattr(accountant, "_contains_non_dp_event") else False
    return ApproxDP(math.inf, 1.0, adjacency) if nothing else None


_NAMES = {"order": ("order", "orders", "alpha", "α"), "epsilon": ("epsilon", "eps", "ε"), "delta": ("delta", "δ")}


def pairs_of(text: str, first: str, second: str) -> tuple[list[float], list[float]]:
    """Return two columns of numbers from CSV text: those that a header names, else the first two.

    ``first`` and ``second`` are two of "order", "epsilon" and "delta". A first row without numbers is a header.
    """
    found: tuple[list[float], list[float]] = [], []
    places = [0, 1]
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not any(cell.strip() for cell in row):
            continue
        try:
            pair = [float(row[place]) for place in places]
        except (ValueError, IndexError):
            if number == 1:
                places = _columns([cell.strip().lower() for cell in row], first, second)
                continue
            raise InputError(f"row {number} must hold two numbers, got {','.join(row)!r}") from None
        for column, value in zip(found, pair, strict=True):
            column.append(value)
    if not found[0]:
        raise InputError("the file must hold two columns of numbers, got none")
    return found


def _columns(header: list[str], *wanted: str) -> list[int]:
    places = [next((i for i, cell in enumerate(header) if cell in _NAMES[name]), None) for name in wanted]
    if any(place is not None for place in places):
        for name, place in zip(wanted, places, strict=True):
            if place is None:
                raise InputError(f"the file must have a column {name}, got {', '.join(header)}")
    return [default if place is None else place for default, place in enumerate(places)]
