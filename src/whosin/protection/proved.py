"""Noise from what is known for certain: a bound that the user proves, or a ball to which the estimate is pulled.

Let Δ be a limit on ‖A(D) - A(D')‖ for adjacent D, D'. By the adjacent coupling the divergence between "in" and "out"
is at most E_γ(Δ/s), so η ≤ m·E_γ(Δ/s).

Let σ ≥ E‖A(D) - c‖ over the draw, for some constant c. Couple in and out independently: the total variation is at most
E g(‖θ_in - θ_out‖/s) with g = E_1 concave, hence at most g((E_in‖θ - c‖ + E_out‖θ - c‖)/s) ≤ g(σ/(m·s)), and
η ≤ m·g(σ/(m·s)). For half of the pool that is ½·g(2σ/s), which no bound that knows σ alone can better: an algorithm
with two values attains it.

A ball of radius R leaves no two estimates further apart than 2R: η ≤ m·E_γ(2R/s), without any draw.
"""

from __future__ import annotations

from whosin.numerics.shift import divergence, scale_for
from whosin.protection.plan import Ball, Noise, Plan
from whosin.protection.pool import Draw

PROVED = "proved by the user"


def from_adjacent_bound(bound: float, eta: float, draw: Draw, noise: Noise) -> Plan:
    """Return the plan for ‖A(D) - A(D')‖ ≤ bound on all adjacent D, D' of the pool."""
    scale = scale_for(noise.kind, draw.per_divergence(eta), bound, draw.log_gamma)
    reason = f"replacing one record moves the estimate by at most {bound:.6g}, which the user has proved"
    found = min(eta, _excess(bound, scale, draw, noise))
    return Plan(scale, 1.0, found, "adjacent bound", PROVED, bound, reason)


def from_moment_bound(bound: float, eta: float, draw: Draw, noise: Noise) -> Plan:
    """Return the plan for E‖A(D) - c‖ ≤ bound over the draw, c any constant."""
    distance = bound / draw.rarer * (1.0 + 4e-16)
    scale = scale_for(noise.kind, draw.per_divergence(eta), distance)
    found = float(divergence(noise.kind, distance / scale)) if scale > 0.0 else 0.0
    reason = f"the mean distance of the estimate from a constant is at most {bound:.6g}, which the user has proved"
    return Plan(scale, 1.0, min(eta, draw.excess(found)), "moment bound", PROVED, bound, reason)


def from_ball(ball: Ball, eta: float, draw: Draw, noise: Noise) -> Plan:
    """Return the plan for an estimate that is pulled into the ball; nothing is drawn."""
    width = 2.0 * ball.radius * (1.0 + 1e-13)
    scale = scale_for(noise.kind, draw.per_divergence(eta), width, draw.log_gamma)
    reason = f"the estimate is pulled into a ball of radius {ball.radius:.6g} before the noise"
    bound = min(eta, _excess(width, scale, draw, noise))
    return Plan(scale, ball.shape, bound, "ball", "deterministic (ball)", ball.radius, reason, ball=ball)


def _excess(distance: float, scale: float, draw: Draw, noise: Noise) -> float:
    if distance == 0.0:
        return 0.0
    return draw.excess(float(divergence(noise.kind, distance / scale, draw.log_gamma)))
