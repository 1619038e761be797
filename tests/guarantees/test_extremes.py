"""Every conversion at the ends of the floats, against mpmath: an upper limit is never below the truth.

The oracle works on corners and closed forms with hundreds of digits and shares no code with the library. A result may
fall short of the truth by 1e-14 of itself, the rounding of a last digit, not more: losing a small parameter beside a
large one shows here. Where a conversion is called tight it must not lie far above either.
"""

import itertools
import math

import mpmath as mp
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin.errors import ImplicationError

mp.mp.prec = 1300
SHORT = mp.mpf(10) ** -14
LEAST = mp.mpf(5e-324)


def powers(low, high):
    return st.floats(low, high).map(lambda x: 10.0**x)


EPSILONS = st.one_of(powers(-300, 300), powers(-20, 3), st.sampled_from([36.0, 37.0, 709.0, 709.8, 744.0, 746.0]))
DELTAS = st.one_of(powers(-300, -1), powers(-12, -1), powers(-16, -1).map(lambda x: 1.0 - x))
SHARES = st.one_of(st.sampled_from([0.5, 0.25, 0.9]), powers(-9, -0.4), powers(-9, -0.4).map(lambda x: 1.0 - x))
RATES = st.one_of(st.sampled_from([0.0, 1.0]), powers(-300, 0), powers(-16, -1).map(lambda x: 1.0 - x))
ADJACENCIES = st.sampled_from(["add_remove", "replace"])


def covers(found, truth, loose=None):
    """A stated limit against the true one, which may be infinite."""
    found = mp.inf if found == math.inf else mp.mpf(found)
    assert found >= truth * (1 - SHORT) - LEAST
    if loose is not None and mp.isfinite(truth):
        assert found <= truth * (1 + mp.mpf(loose)) + 4 * LEAST


def close_corners(epsilon, delta):
    s, d = mp.exp(-mp.mpf(epsilon)), mp.mpf(delta)
    return [(mp.mpf(0), d), ((1 - d) * s / (1 + s), d + (1 - d) / (1 + s)), (1 - d, mp.mpf(1)), (mp.mpf(1), mp.mpf(1))]


def on(corners, x):
    for (a, b), (c, d) in itertools.pairwise(corners):
        if x <= c:
            return b if c == a else b + (d - b) * (x - a) / (c - a)
    return mp.mpf(1)


def twice(corners):
    """The curve after itself, by its corners: those of the inner one, and where it passes those of the outer one."""
    inner = [x for x, _ in corners]
    for target, _ in corners:
        for (a, b), (c, d) in itertools.pairwise(corners):
            if b <= target <= d and d > b:
                inner.append(a + (c - a) * (target - b) / (d - b))
    return [(x, on(corners, on(corners, x))) for x in inner]


def divergence(corners, gamma):
    return max(mp.mpf(0), *(y - gamma * x for x, y in corners))


def smallest_epsilon(corners, delta, rounding=0):
    """The largest slope from (0, δ); a corner that is above δ by no more than its rounding is at δ."""
    steep = [mp.log((y - delta) / x) if x > 0 else mp.inf for x, y in corners if y > delta + rounding]
    return max(mp.mpf(0), *steep) if steep else mp.mpf(0)


def excess(corners, share):
    rarer = min(mp.mpf(share), 1 - mp.mpf(share))
    return rarer * divergence(corners, (1 - rarer) / rarer)


@settings(max_examples=30)
@given(EPSILONS, st.one_of(st.just(0.0), DELTAS), ADJACENCIES, DELTAS, SHARES, RATES)
def test_close_pairs(epsilon, delta, adjacency, wanted, share, rate):
    source = wi.ApproxDP(epsilon, delta, adjacency) if delta else wi.PureDP(epsilon, adjacency)
    one = close_corners(epsilon, delta)
    replaced = one if adjacency == "replace" else twice(one)
    covers(source.advantage, divergence(one, 1), 1e-12)
    covers(source.tpr_at(rate), on(one, mp.mpf(rate)), 1e-9)
    covers(source.accuracy(share), max(mp.mpf(share), 1 - mp.mpf(share)) + excess(one, share), 1e-12)
    covers(source.implies(wi.ApproxDP, delta=wanted).epsilon, smallest_epsilon(one, mp.mpf(wanted)), 1e-9)
    covers(source.implies(wi.PMP, delta=wanted).epsilon, smallest_epsilon(replaced, mp.mpf(wanted)), 1e-9)
    covers(source.implies(wi.MIP, train_fraction=share).eta, excess(replaced, share), 1e-9)
    own = source.implies(wi.PMP)
    covers(own.delta, divergence(replaced, mp.exp(mp.mpf(own.epsilon))))
    practical = wi.PMP(epsilon, delta, share)
    covers(practical.implies(wi.MIP).eta, excess(one, share), 1e-9)
    covers(practical.implies(wi.PMP, delta=wanted).epsilon, smallest_epsilon(one, mp.mpf(wanted)), 1e-9)
    if adjacency == "add_remove":
        sampled = source.implies(type(source), sample_rate=rate)
        covers(sampled.epsilon, mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(epsilon))), 1e-9)
        covers(sampled.delta, mp.mpf(rate) * mp.mpf(delta), 1e-12)


@given(EPSILONS, ADJACENCIES, SHARES, st.sampled_from([2, 3, 1000, 10**12]))
def test_pure_promises_and_beliefs(epsilon, adjacency, share, candidates):
    source = wi.PureDP(epsilon, adjacency)
    two = mp.mpf(epsilon) * (1 if adjacency == "replace" else 2)
    low, high = source.posterior(share, world="fixed_size")
    odds = (1 - mp.mpf(share)) / mp.mpf(share)
    covers(high, 1 / (1 + odds * mp.exp(-two)), 1e-12)
    assert mp.mpf(low) <= 1 / (1 + odds * mp.exp(two)) * (1 + SHORT) + LEAST
    covers(source.implies(wi.MembershipPrivacy, family="bounded").gamma, mp.exp(two))
    if epsilon < 1e150:
        covers(source.implies(wi.ZeroConcentratedDP).rho, mp.mpf(epsilon) ** 2 / 2, 1e-9)
    identified = source.implies(wi.DifferentialIdentifiability, candidates=candidates)
    covers(identified.rho, 1 / (1 + (candidates - 1) * mp.exp(-two)), 1e-12)


@given(
    st.sampled_from([2, 3, 5, 1000, 10**9, 10**200]),
    st.one_of(powers(-15, 0), st.floats(0.0, 1e3)),
    DELTAS,
    SHARES,
    RATES,
)
def test_identifiability(candidates, more, wanted, share, rate):
    rho = min(1.0, (1.0 + more) / candidates)
    assume(rho >= 1.0 / candidates and rho not in (1.0 / candidates, 1.0 / (candidates - 1)))
    source = wi.DifferentialIdentifiability(rho, candidates)
    r, least = mp.mpf(rho), 1 - (candidates - 1) * mp.mpf(rho)
    if candidates * r <= 1:
        corner = (mp.mpf(0), mp.mpf(0))
    else:
        corner = (1 - r, 1 - least) if least > 0 else ((1 - r) / ((candidates - 1) * r), mp.mpf(1))
    corners = [(mp.mpf(0), mp.mpf(0)), corner, (mp.mpf(1), mp.mpf(1))]
    mirrored = [(1 - y, 1 - x) for x, y in reversed(corners)]
    covers(source.advantage, divergence(corners, 1), 1e-9)
    covers(source.tpr_at(rate), on(corners, mp.mpf(rate)))
    covers(source.implies(wi.MIP, train_fraction=share).eta, excess(corners if share <= 0.5 else mirrored, share))
    if least > 0 and candidates * r > 1:
        covers(source.implies(wi.PureDP).epsilon, mp.log(r / least), 1e-12)
    try:
        found = source.implies(wi.PMP, delta=wanted).epsilon
    except ImplicationError:
        return
    covers(found, max(smallest_epsilon(c, mp.mpf(wanted)) for c in (corners, mirrored)), 1e-9)


@given(
    st.one_of(powers(-15, 0).map(lambda x: 1.0 + x), powers(0, 300)),
    st.sampled_from(["independent", "uniform", "bounded"]),
    st.booleans(),
    RATES,
)
def test_membership_privacy(gamma, family, negative, rate):
    source = wi.MembershipPrivacy(gamma, family, negative)
    ratio = 2 * mp.mpf(gamma) - 1 if family == "uniform" else mp.mpf(gamma)
    ends = [(mp.mpf(0), mp.mpf(0)), (mp.mpf(1), mp.mpf(1))]
    corner = (1 / (1 + ratio), ratio / (1 + ratio)) if family == "bounded" else (1 / ratio, mp.mpf(1))
    corners = (
        [ends[0], corner, ends[1]] if family == "bounded" or not negative else [(mp.mpf(0), 1 - 1 / ratio), ends[1]]
    )
    covers(source.advantage, divergence(corners, 1), 1e-12)
    covers(source.tpr_at(rate), on(corners, mp.mpf(rate)), 1e-9)
    if family == "bounded":
        covers(source.implies(wi.PureDP).epsilon, mp.log(ratio), 1e-12)
    if family == "independent":
        covers(source.implies(wi.PMP).delta, 1 - 1 / ratio, 1e-12)


@given(SHARES, st.one_of(powers(-300, -1), powers(-18, -1)), RATES)
def test_mip(share, eta, rate):
    assume(eta < min(share, 1.0 - share))
    q, most = mp.mpf(share), max(mp.mpf(share), 1 - mp.mpf(share)) + mp.mpf(eta)
    corners = [(mp.mpf(0), (most - (1 - q)) / q), (1 - (most - q) / (1 - q), mp.mpf(1)), (mp.mpf(1), mp.mpf(1))]
    source = wi.MIP(eta, share)
    covers(source.tpr_at(rate), on(corners, mp.mpf(rate)))
    covers(source.advantage, divergence(corners, 1))


def normal_divergence(mu, log_gamma):
    with mp.workprec(1300 if mu < 1e-5 else 400):
        mu, t = mp.mpf(mu), mp.mpf(log_gamma)
        if t / mu > 1e4:
            return mp.mpf(0)
        return mp.erfc((t / mu - mu / 2) / mp.sqrt(2)) / 2 - mp.exp(t) * mp.erfc((t / mu + mu / 2) / mp.sqrt(2)) / 2


@given(st.one_of(powers(-300, -10), powers(-10, 1.5), powers(1, 3)), DELTAS, SHARES)
def test_gaussian(mu, wanted, share):
    source = wi.GaussianDP(mu, "replace")
    half = mp.erf(mp.mpf(mu) / mp.sqrt(8))
    covers(source.advantage, half, 1e-12)
    epsilon = source.implies(wi.ApproxDP, delta=wanted).epsilon
    assert (half if epsilon == 0.0 else normal_divergence(mu, epsilon)) <= mp.mpf(wanted)
    rarer = min(mp.mpf(share), 1 - mp.mpf(share))
    truth = half if share == 0.5 else normal_divergence(mu, mp.log((1 - rarer) / rarer))
    covers(source.implies(wi.MIP, train_fraction=share).eta, rarer * truth)
    covers(source.implies(wi.ZeroConcentratedDP).rho, mp.mpf(mu) ** 2 / 2)


def most_found(fpr, orders, epsilons):
    """The largest TPR of two coins that keep every order, by halving its log odds."""
    q = mp.mpf(fpr)

    def kept(p):
        return p < 1 and all(
            mp.log(x**a * y ** (1 - a) + (1 - x) ** a * (1 - y) ** (1 - a)) <= (a - 1) * e
            for a, e in zip(orders, epsilons, strict=True)
            for x, y in ((p, q), (q, p))
        )

    low = mp.log(q / (1 - q))
    high = low + 2000
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if kept(1 / (1 + mp.exp(-middle))) else (low, middle)
    return 1 / (1 + mp.exp(-low))


@pytest.mark.parametrize(
    ("orders", "epsilons", "fpr"),
    [
        ([1.391230882632785], [1.2110807225157622e-16], 1.4693087042138895e-07),
        ([1.0000094105862674, 1.00015041036728], [1.0993459876388775e-11, 1.9702487713737078e-11], 0.7561310873229671),
        ([1.000001], [1e-13], 0.3),
        ([8.45], [2e-97], 0.3),
        ([6280.45], [3e-175], 1e-91),
        ([2.0, 1e6], [1e-3, 500.0], 1e-150),
        ([1.5, 8.0, 64.0], [1e3, 1e4, 1e5], 1e-9),
        ([3.0], [40.0], 1.0 - 1e-9),
    ],
)
def test_renyi_by_two_coins(orders, epsilons, fpr):
    with mp.workprec(500):
        truth = most_found(fpr, [mp.mpf(a) for a in orders], [mp.mpf(e) for e in epsilons])
    assert mp.mpf(wi.RenyiDP(orders, epsilons).tpr_at(fpr)) >= truth * (1 - mp.mpf(10) ** -12)


@pytest.mark.parametrize(
    ("rho", "delta"),
    [(724.0, 2e-11), (5e-7, 3e-299), (348.0, 1.3e-7), (2.3e-8, 6e-177), (1e-151, 0.1), (1e-30, 1e-9), (1e5, 1e-5)],
)
def test_concentrated_between_the_gaussian_and_the_usual_conversion(rho, delta):
    epsilon = wi.ZeroConcentratedDP(rho).implies(wi.ApproxDP, delta=delta).epsilon
    assert epsilon <= (rho + 2.0 * math.sqrt(-rho * math.log(delta))) * (1.0 + 1e-9)
    with mp.workprec(1300):
        mu = mp.sqrt(2 * mp.mpf(rho))
        truth = mp.erf(mu / mp.sqrt(8)) if epsilon == 0.0 else normal_divergence(mu, epsilon)
        assert truth <= mp.mpf(delta) * (1 + SHORT)


def lowest_of(lines):
    """Corners of what lies below all lines (rise, start) and below 1."""
    lines = [*lines, (mp.mpf(0), mp.mpf(1))]
    crossings = [(d - b) / (a - c) for (a, b), (c, d) in itertools.combinations(lines, 2) if a != c]
    places = sorted({mp.mpf(0), mp.mpf(1), *(x for x in crossings if 0 <= x <= 1)})
    return [(x, min(a * x + b for a, b in lines)) for x in places]


def mirror(corners):
    return [(1 - y, 1 - x) for x, y in reversed(corners)]


def after(outer, inner):
    """The outer curve after the inner one, by its corners."""
    places = [x for x, _ in inner]
    for target, _ in outer:
        for (a, b), (c, d) in itertools.pairwise(inner):
            if b <= target <= d and d > b:
                places.append(a + (c - a) * (target - b) / (d - b))
    return sorted((x, on(outer, on(inner, x))) for x in places)


def concave(points):
    kept = []
    for x, y in sorted(points):
        while len(kept) > 1 and (kept[-1][0] - kept[-2][0]) * (y - kept[-2][1]) >= (kept[-1][1] - kept[-2][1]) * (
            x - kept[-2][0]
        ):
            kept.pop()
        kept.append((x, y))
    return kept[1:] if len(kept) > 1 and kept[0][0] == kept[1][0] else kept


def covered_curve(source, corners, wanted, share, rate, rounding=0):
    """Everything that is read off a piecewise-linear promise, against the exact corners."""
    covers(source.advantage, divergence(corners, 1))
    covers(source.tpr_at(rate), on(corners, mp.mpf(rate)))
    both = corners, mirror(corners)
    covers(source.accuracy(share), max(mp.mpf(share), 1 - mp.mpf(share)) + excess(both[share > 0.5], share))
    delta = mp.mpf(wanted)
    covers(
        source.implies(wi.ApproxDP, delta=wanted).epsilon, max(smallest_epsilon(one, delta, rounding) for one in both)
    )
    replaced = both if source.adjacency == "replace" else [after(*both)]
    covers(
        source.implies(wi.PMP, delta=wanted).epsilon, max(smallest_epsilon(one, delta, rounding) for one in replaced)
    )
    covers(source.implies(wi.MIP, train_fraction=share).eta, max(excess(one, share) for one in replaced))


SMALL = st.one_of(st.just(0.0), powers(-300, -0.5), powers(-17, -0.5))
RISES = EPSILONS.filter(lambda epsilon: epsilon < 1000)
"""Of larger ones 1 - exp(-ε) is 1 in the digits in which the corners are computed."""
WAYS = st.sampled_from(["replace", "zero_out"])


@settings(max_examples=60)
@example([(709.0, 0.0, 0.0)], "zero_out", False, 1.0 - 2.0**-53, 0.5, 0.5)
@example([(709.8, 0.0, 0.0), (1.0, 1e-16, 0.0)], "replace", False, 1e-17, 0.5, 0.0)
@given(st.lists(st.tuples(RISES, SMALL, SMALL), min_size=1, max_size=3), WAYS, st.booleans(), DELTAS, SHARES, RATES)
def test_profiles(points, adjacency, apart, wanted, share, rate):
    """Slopes and corners that no float tells from those of no promise at all."""
    epsilons, inside, outside = zip(*points, strict=True)
    source = wi.PrivacyProfile(epsilons, inside, adjacency, outside if apart else None)
    with mp.workprec(5000):
        lines = []
        for epsilon, one, other in zip(epsilons, inside, outside if apart else inside, strict=True):
            rise = mp.exp(mp.mpf(epsilon))
            lines += [(rise, mp.mpf(one)), (1 / rise, 1 - 1 / rise + mp.mpf(other) / rise)]
        covered_curve(source, lowest_of(lines), wanted, share, rate, rounding=mp.mpf(10) ** -500)
    low, high = source.log_likelihood_ratios()
    assert high == min((e for e, d in zip(epsilons, inside, strict=True) if d == 0.0), default=math.inf)
    assert low == -min(
        (e for e, d in zip(epsilons, outside if apart else inside, strict=True) if d == 0.0), default=math.inf
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(RATES, RATES), min_size=1, max_size=3), WAYS, DELTAS, SHARES, RATES)
def test_trade_offs(points, adjacency, wanted, share, rate):
    fpr, tpr = (sorted(rates) for rates in zip(*points, strict=True))
    source = wi.TradeOff(wi.Roc(fpr, tpr), adjacency)
    given = [(mp.mpf(x), mp.mpf(y)) for x, y in zip([0.0, *fpr, 1.0], [0.0, *tpr, 1.0], strict=True)]
    covered_curve(source, concave(given), wanted, share, rate)


def split(mu, rate, gamma):
    """E_γ of (1-q)N(0) + qN(μ) against (1-q)N(0) + qN(-μ): the likelihood ratio rises, so a threshold is best."""
    rest = (gamma - 1) * (1 - rate)
    root = (rest + mp.sqrt(rest**2 + 4 * gamma * rate**2 * mp.exp(-(mu**2)))) / (2 * rate * mp.exp(-(mu**2) / 2))
    at = mp.log(root) / mu
    if at > 10**5:
        return mp.mpf(0)
    return rate * mp.ncdf(mu - at) - rest * mp.ncdf(-at) - gamma * rate * mp.ncdf(-mu - at)


def sampled(mu, rate, gamma):
    return rate * normal_divergence(mu, mp.log((gamma - 1) / rate + 1))


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "sampling"),
    [
        (745.0, 1.0 - 2.0**-53, 1, "poisson"),
        (0.05, 1e-300, 1, "poisson"),
        (0.0366, 2.3e-296, 1, "fixed_size"),
        (1e-300, 1e-300, 1, "poisson"),
        (0.05, 1e-12, 1, "fixed_size"),
        (1.41, 2.3e-10, 2, "poisson"),
        (0.1028, 0.9999978, 1, "poisson"),
        (3.6, 3.1e-5, 1, "fixed_size"),
        (0.0106, 0.99999995, 1000, "poisson"),
        (1e21, 0.9999999999997772, 1000, "poisson"),
    ],
)
def test_runs_at_the_ends_of_their_parameters(noise, rate, steps, sampling):
    """Not below their first step, and not above what full batches or the drawn alone give away."""
    run = wi.DPSGD(noise, rate, steps, sampling)
    with mp.workprec(1300):
        mu, q = (1 if sampling == "poisson" else 2) / mp.mpf(max(noise, 1e-4)), mp.mpf(rate)
        first = q * mp.erf(mu / mp.sqrt(8))
        covers(run.advantage, first * (1 - mp.mpf(10) ** -30))
        covers(mp.mpf(min(1 - (1 - q) ** steps, mp.erf(mu * mp.sqrt(steps) / mp.sqrt(8)))), mp.mpf(run.advantage))
        covers(run.outsider_roc().divergence(1.0), first * (1 - mp.mpf(10) ** -30))
        step = split if sampling == "poisson" else sampled
        for share in (0.5, 0.3, 0.998, 1e-9):
            rarer = min(mp.mpf(share), 1 - mp.mpf(share))
            truth = rarer * step(mu, q, (1 - rarer) / rarer) * (1 - mp.mpf(10) ** -30)
            covers(run.implies(wi.MIP, train_fraction=share).eta, truth)
        for delta in (1e-301, 1e-20, 1e-9):
            epsilon = run.implies(wi.PMP, delta=delta).epsilon
            if 0.0 < epsilon < 1e3:
                assert step(mu, q, mp.exp(mp.mpf(epsilon))) <= mp.mpf(delta) * (1 + SHORT)
