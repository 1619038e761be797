"""The parts of an audit: curves, single records, groups, metrics, comparisons, and sizes of a release."""

import math

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.stats import norm

import whosin as wi
from experiments.mace.heuristics import threshold_attack
from whosin.auditing import audit
from whosin.auditing.measuring.cells import coarser
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.individual import FEWEST
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.releases.queries import arrays as array_queries
from whosin.auditing.releases.queries import tables as table_queries
from whosin.auditing.releases.release_size import release_size

pytestmark = pytest.mark.long

LEVEL = 0.8
DELTA = 1 - LEVEL
RUNS = 300
SIZES = [(60, 60), (300, 300), (60, 3000), (3000, 60)]
F1 = wi.risks.RatioMetric(a=(0, 2, 0, 0, 0), b=(0, 2, 1, 1, 0), name="F1")
ENDS = np.array([-np.inf, np.inf])


def rates(attack, shift):
    """True FPR and TPR of an attack on normal answers, members moved by ``shift``."""
    return tuple(float(_accused(attack.candidate, np.array([attack.threshold]), mean)[0]) for mean in (0.0, shift))


def _accused(candidate, thresholds, mean):
    """Chance that a normal answer around ``mean`` is accused at each threshold of a candidate's score."""
    if candidate.rule == "cells":
        edges = np.concatenate([ENDS[:1], candidate.view.cells.edges, ENDS[1:]])
        masses = np.diff(norm.cdf(edges - mean))
        return np.array([masses[candidate.ratios >= t].sum() for t in thresholds])
    return norm.sf(thresholds - mean) if candidate.rule == "high" else norm.cdf(-thresholds - mean)


def curve(candidate, shift):
    """True FPRs and TPRs of every threshold of a candidate's score, both rising from 0 to 1."""
    steps = -np.sort(-np.unique(candidate.ratios)) if candidate.rule == "cells" else np.linspace(12.0, -12.0, 961)
    fpr, tpr = (_accused(candidate, steps, mean) for mean in (0.0, shift))
    return np.append(0.0, np.append(fpr, 1.0)), np.append(0.0, np.append(tpr, 1.0))


def f1(fpr, tpr, prior):
    return 2 * prior * tpr / (prior * tpr + (1 - prior) * fpr + prior)


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("sizes", SIZES)
def test_curves_and_metrics(shift, sizes, seed, judge):
    rng = np.random.default_rng([101, seed, *sizes])
    prior, asked = 0.3, 0.1
    names = ("band lower", "band upper", "tpr_at", "accuracy lower", "accuracy upper", "F1 lower", "F1 upper", "ppv")
    misses = dict.fromkeys(names, 0)
    z = np.linspace(-12.0, 12.0, 20_001)
    best_accuracy = np.max(prior * norm.sf(z - shift) + (1 - prior) * norm.cdf(z))
    best_f1 = max(f1(norm.sf(z), norm.sf(z - shift), prior).max(), f1(1.0, 1.0, prior))
    for run in range(RUNS):
        a = audit(
            rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]), prior=prior, rng=run, confidence_level=LEVEL
        )
        fpr, tpr = curve(a.attack.candidate, shift)
        misses["band lower"] += np.any(a.band.lower.tpr(fpr) > wi.Roc(fpr, tpr).hull().tpr(fpr) + 1e-9)
        misses["band upper"] += np.any(a.band.upper.tpr(fpr) < tpr - 1e-9)
        chosen = a._evidence.choose(lambda x, y: np.where(x <= asked, y, -np.inf))
        x, y = rates(chosen, shift)
        at = a.tpr_at(asked)
        misses["tpr_at"] += not (at.lower <= y <= at.upper and at.fpr.lower <= x <= at.fpr.upper)
        found = a.risk("accuracy")
        misses["accuracy lower"] += found.lower > max(best_accuracy, 1 - prior) + 1e-9
        misses["accuracy upper"] += found.upper < max(best_accuracy, 1 - prior) - 1e-9
        found = a.risk(F1)
        asked_of = a._evidence.choose(lambda x, y: f1(x, y, prior)).candidate
        misses["F1 lower"] += found.lower > best_f1 + 1e-9
        misses["F1 upper"] += found.upper < f1(*curve(asked_of, shift), prior).max() - 1e-9
        found, accused = a.risk("ppv", fpr=asked), prior * y + (1 - prior) * x
        misses["ppv"] += accused > 0 and not found.lower <= prior * y / accused <= found.upper
    for name, count in misses.items():
        judge(count, RUNS, DELTA if name in ("tpr_at", "ppv") else DELTA / 2)


SYMBOLS = 30
MEMBERS_LAW = np.arange(1, SYMBOLS + 1) / np.arange(1, SYMBOLS + 1).sum()
OTHERS_LAW = np.full(SYMBOLS, 1 / SYMBOLS)


@pytest.mark.parametrize("prior", [0.5, 0.05])
@pytest.mark.parametrize("sizes", SIZES)
def test_individual_risks_of_symbols(prior, sizes, seed, judge):
    """A member and a non-member that were named beforehand, and all records at once."""
    rng, level = np.random.default_rng([103, seed, *sizes]), 0.95
    truth = prior * MEMBERS_LAW / (prior * MEMBERS_LAW + (1 - prior) * OTHERS_LAW)
    accuracy = np.maximum(truth, 1 - truth)
    named, misses = (0, sizes[0]), np.zeros((2, 3), dtype=int)
    together = np.zeros(3, dtype=int)
    metric = wi.risks.RatioMetric(a=(0, 1, 0, 0, 1), b=(1, 0, 0, 0, 0), name="accuracy")
    for run in range(RUNS):
        x, y = rng.choice(SYMBOLS, sizes[0], p=MEMBERS_LAW), rng.choice(SYMBOLS, sizes[1], p=OTHERS_LAW)
        table = audit(x, y, prior=prior, kind="discrete", rng=run, confidence_level=level).individual
        symbol = np.concatenate([x, y])
        for column, (value, wanted) in enumerate(_values(table, metric, truth, accuracy, False)):
            wrong = (value[1] > wanted[symbol] + 1e-12) | (value[2] < wanted[symbol] - 1e-12)
            misses[:, column] += wrong[list(named)]
        for column, (value, wanted) in enumerate(_values(table, metric, truth, accuracy, True)):
            together[column] += np.any((value[1] > wanted[symbol] + 1e-12) | (value[2] < wanted[symbol] - 1e-12))
    for count in (*misses.ravel(), *together):
        judge(count, RUNS, 1 - level)


def test_individual_risks_of_a_record_named_beforehand(seed, judge):
    """Both sides follow one law, so every posterior is the prior; the first member is asked about.

    Limits that count the record in its own cell miss 3.3 % of the time here, where 1 % is promised.
    """
    rng = np.random.default_rng([149, seed])
    runs, level, misses = 1200, 0.99, 0
    for run in range(runs):
        x, y = rng.integers(500, size=20), rng.integers(500, size=20_000)
        table = audit(x, y, kind="discrete", rng=run, confidence_level=level).individual
        misses += not table.lower[0] <= 0.5 <= table.upper[0]
    judge(misses, runs, 1 - level)


def _values(table, metric, truth, accuracy, simultaneous):
    """The risk, its advantage and its accuracy with limits, each with the truth by symbol."""
    sides = (table.simultaneous_lower, table.simultaneous_upper) if simultaneous else (table.lower, table.upper)
    return (
        ((table.risk, *sides), truth),
        (table.advantage(simultaneous=simultaneous), np.abs(2 * truth - 1)),
        (table.value(metric, simultaneous=simultaneous), accuracy),
    )


@pytest.mark.parametrize("shift", [0.0, 1.5])
@pytest.mark.parametrize("sizes", [(300, 300), (90, 6000), (6000, 90)])
def test_individual_risks_of_numbers(shift, sizes, seed, judge):
    """All records at once, and a record held out and named beforehand, whose cell the fit part had fixed."""
    rng = np.random.default_rng([107, seed, *sizes])
    prior, alone, together, seen = 0.5, 0, 0, 0
    for run in range(RUNS):
        a = audit(rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]), rng=run, confidence_level=LEVEL)
        table = a.individual
        truth = _posterior_by_cell(a, shift, prior)[table.cell]
        together += np.any((table.simultaneous_lower > truth + 1e-12) | (table.simultaneous_upper < truth - 1e-12))
        first = int(np.flatnonzero(~a._evidence.fit_members)[0])
        alone += not table.lower[first] - 1e-12 <= truth[first] <= table.upper[first] + 1e-12
        seen += 1
    judge(alone, seen, DELTA)
    judge(together, seen, DELTA)


def _posterior_by_cell(a, shift, prior):
    view = a.attack.candidate.view
    fit = np.concatenate([view.fit_members, view.fit_non_members])
    edges = np.concatenate([ENDS[:1], coarser(view.cells, fit, max(FEWEST, len(fit) // 100)).edges, ENDS[1:]])
    inside, outside = (np.diff(norm.cdf(edges - mean)) for mean in (shift, 0.0))
    return prior * inside / (prior * inside + (1 - prior) * outside)


SHIFTS = {"a": 2.0, "b": 0.0, "c": 1.0}
SHARES = {"a": 0.2, "b": 0.5, "c": 0.3}


def _grouped(rng, count, member):
    label = rng.choice(list(SHARES), count, p=list(SHARES.values()))
    return label, rng.normal(size=count) + (np.array([SHIFTS[one] for one in label]) if member else 0.0)


@pytest.mark.parametrize("sizes", [(200, 200), (150, 3000), (3000, 150)])
def test_groups_together(sizes, seed, judge):
    """Every advantage and every difference of the table, and of one that was searched for, hold at once."""
    rng = np.random.default_rng([109, seed, *sizes])
    misses, scanned = 0, 0
    for run in range(RUNS):
        (inside, x), (outside, y) = _grouped(rng, sizes[0], True), _grouped(rng, sizes[1], False)
        a = audit(x, y, groups=(inside, outside), rng=run, confidence_level=LEVEL)
        misses += any(_wrong(row, row.name, a.attack) for row in a.groups)
        coins = tuple(rng.integers(2, size=size) for size in sizes)
        found = audit(x, y, rng=run, confidence_level=LEVEL).groups.scan(
            {"g": (inside, outside), "coin": coins}, min_size=10, top=3
        )
        scanned += any(_wrong(row, _letter(row.name), a.attack) for row in found)
    judge(misses, RUNS, DELTA)
    judge(scanned, RUNS, DELTA)


def _letter(name):
    """The group in the name of a searched one; the coin makes no difference."""
    return next((part[2:] for part in name.split(", ") if part.startswith("g=")), None)


def _wrong(row, letter, attack):
    """Whether a limit of a row misses; the attack's rates in a group depend on its letter alone."""
    inside = {one: rates(attack, shift)[1] for one, shift in SHIFTS.items()}
    fpr = rates(attack, 0.0)[0]
    everybody = sum(SHARES[one] * inside[one] for one in SHARES)
    own = everybody if letter is None else inside[letter]
    if letter is None:
        other = everybody
    else:
        share = SHARES[letter] * (0.5 if "coin" in row.name else 1.0)
        other = (everybody - share * own) / (1 - share)
    pairs = (row.advantage, own - fpr), (row.difference, own - other)
    return any(not found.lower - 1e-12 <= value <= found.upper + 1e-12 for found, value in pairs)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("sizes", [(300, 300), (150, 6000), (6000, 150)])
def test_comparisons_do_not_refute_what_holds(epsilon, sizes, seed, judge):
    """Randomised response attains ε; a shifted normal answer attains Gaussian DP."""
    rng = np.random.default_rng([113, seed, *sizes])
    shift = epsilon / 2
    counts = dict.fromkeys(("epsilon", "violated", "Gaussian"), 0)
    truthful = 1 / (1 + math.exp(-epsilon))
    for run in range(RUNS):
        x, y = rng.random(sizes[0]) < truthful, rng.random(sizes[1]) > truthful
        a = audit(x, y, assignment="independent trainings", rng=run, confidence_level=LEVEL)
        against = a.compare(wi.PureDP(epsilon))
        counts["epsilon"] += against.epsilon_lower > epsilon + 1e-12
        counts["violated"] += against.verdict == "violated"
        a = audit(
            rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1]), assignment="independent trainings", rng=run,
            confidence_level=LEVEL,
        )  # fmt: skip
        counts["Gaussian"] += a.compare(wi.GaussianDP(shift)).verdict == "violated"
    for count in counts.values():
        judge(count, RUNS, DELTA)


@pytest.mark.parametrize("given", [True, False], ids=["threshold given", "threshold by the records"])
@pytest.mark.parametrize("sizes", SIZES)
def test_threshold_attacks(given, sizes, seed, judge):
    """Both rates, and what is computed from them, lie in their limits together, at the threshold that was used."""
    rng = np.random.default_rng([127, seed, given, *sizes])
    runs, misses = 2000, 0
    for _ in range(runs):
        x, y = rng.normal(1, 1, sizes[0]), rng.normal(0, 1, sizes[1])
        found = threshold_attack(x, y, **({"threshold": 1.2} if given else {"share": 0.2}), confidence_level=LEVEL)
        tpr, fpr = norm.sf(found.threshold - 1), norm.sf(found.threshold)
        pairs = (found.tpr, tpr), (found.fpr, fpr), (found.advantage, tpr - fpr)
        misses += any(not one.lower <= value <= one.upper for one, value in pairs)
    judge(misses, runs, DELTA)


@pytest.mark.parametrize("sizes", [(300, 300), (100, 3000)])
def test_sizes_of_a_release_together(sizes, seed, judge):
    """Answers of two queries that grow with the release: every limit at every size at once."""
    rng = np.random.default_rng([131, seed, *sizes])
    runs, misses = 150, 0
    shifts = {"one": np.array([0.0, 0.5, 1.0, 1.5, 2.0]), "two": np.array([0.3, 0.3, 0.6, 2.0, 2.5])}
    truth = np.max([2 * norm.cdf(shift / 2) - 1 for shift in shifts.values()], axis=0)
    for run in range(runs):
        own = rng.normal(size=(sum(sizes), 1))
        member = (np.arange(sum(sizes)) < sizes[0])[:, None]
        answers = {name: own + member * shift for name, shift in shifts.items()}
        found = release_size(answers, sizes[0], (10, 20, 40, 80, 160), LEVEL, run).advantages
        misses += any(not one.lower <= value <= one.upper for one, value in zip(found, truth, strict=True))
    judge(misses, runs, DELTA)


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
def test_a_release_of_other_rows_does_not_cry_wolf(seed, judge):
    """Rows of one population on all three sides: no query, no size, no group, no difference of records alone."""
    rng = np.random.default_rng([137, seed])
    runs, alarms, alone = 80, np.zeros(4, dtype=int), 0
    for run in range(runs):
        train, holdout, synthetic = (rng.normal(size=(rows, 2)) for rows in (120, 120, 200))
        labels = tuple(rng.integers(3, size=120) for _ in range(2))
        a = wi.audit_synthetic(train, holdout, synthetic, groups=labels, confidence_level=LEVEL, rng=run)
        alarms += [
            a.advantage.lower > 0,
            any(found.lower > 0 for found in a.queries.values()),
            any(found.lower > 0 for found in a.release_size.advantages),
            any(row.stands_out for row in a.groups),
        ]
        alone += a.records_alone.lower > 0
    for count in alarms:
        judge(count, runs, DELTA / 2)
    judge(alone, runs, 0.01 / 2)


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
@pytest.mark.parametrize("way", ["spare", "given", "given, blocks"])
def test_references_do_not_cry_wolf(way, seed, judge):
    """Rows of one population everywhere, a few words and numbers: all queries against a reference, each of them too."""
    rng = np.random.default_rng([138, seed, len(way)])
    runs, alarms = 80, np.zeros(2, dtype=int)
    for run in range(runs):
        sizes = (60, 300, 80) if way == "spare" else (100, 100, 150, 200)
        tables = [
            {"a": rng.normal(size=n).round(1), "b": rng.integers(5, size=n), "c": rng.choice(list("stu"), n)}
            for n in sizes
        ]
        options = {"reference": tables[3]} if way != "spare" else {}
        options |= {"block_rows": 40} if way == "given, blocks" else {}
        found = wi.audit_synthetic(*tables[:3], confidence_level=LEVEL, rng=run, **options)
        assert "classifier" in found.queries
        assert bool(found.set_aside) == (way == "spare")
        alarms += [found.advantage.lower > 0, any(one.lower > 0 for one in found.queries.values())]
    for count in alarms:
        judge(count, runs, DELTA / 2)


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
@pytest.mark.parametrize("pool", [2, 3])
def test_ids_dealt_without_replacement_do_not_cry_wolf(pool, seed, judge):
    """Ids 1, 2, 3… are dealt to the sides, so what one has the other lacks; the release repeats some of any side."""
    rng = np.random.default_rng([173, seed, pool])
    runs, n, looked, alarms = 200, 80, 0, [0, 0]
    for run in range(runs):
        dealt, met = rng.permutation(pool * n) + 1, rng.permutation(pool * n)[:n] + 1
        tables = [
            {"age": rng.integers(20, 60, n), "job": rng.choice(list("abc"), n), "patient_id": ids}
            for ids in (dealt[:n], dealt[n : 2 * n], met)
        ]
        found = wi.audit_synthetic(*tables, confidence_level=LEVEL, rng=run)
        looked += "repeated_keys" in found.queries
        alone = found.queries.get("repeated_keys")
        alarms = [alarms[0] + (found.advantage.lower > 0), alarms[1] + (alone is not None and alone.lower > 0)]
    assert looked > runs / 2
    for count in alarms:
        judge(count, runs, DELTA / 2)


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
@pytest.mark.parametrize("sizes", [(150, 150), (60, 1000)])
def test_a_release_of_noisy_copies(sizes, seed, judge):
    """Given the release, the lower limit against the attack's true rates: the reported rows, and 40,000 fresh ones."""
    rng = np.random.default_rng([139, seed, *sizes])
    runs, misses, leaks = 100, 0, 0
    for run in range(runs):
        train, holdout = rng.normal(size=(sizes[0], 2)), rng.normal(size=(sizes[1], 2))
        synthetic = train + 0.05 * rng.normal(size=train.shape)
        a = wi.audit_synthetic(train, holdout, synthetic, query="nearest", confidence_level=LEVEL, rng=run)
        fresh = -cKDTree(synthetic).query(rng.normal(size=(40_000, 2)))[0]
        held = a._evidence.held_out(a.attack.candidate.view).members
        truth = a.attack.accuses(held).mean() - a.attack.accuses(fresh).mean()
        misses += a.advantage.lower > max(0.0, truth)
        leaks += a.advantage.lower > 0
    judge(misses, runs, DELTA / 2)
    assert leaks > runs / 2


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
@pytest.mark.parametrize("kind", ["tables", "arrays"])
def test_every_query_by_itself_does_not_cry_wolf(kind, seed, judge):
    """Rows of one population everywhere: each query that there is, asked alone, at the level of one that is."""
    rng = np.random.default_rng([139, seed, len(kind)])
    known = table_queries if kind == "tables" else array_queries
    names = [name for name in known.QUERIES if name != "repeated_keys"]
    runs, alarms = 400, dict.fromkeys(names, 0)
    for _ in range(runs):
        tables = [
            {"a": rng.normal(size=n).round(1), "b": rng.integers(5, size=n), "c": rng.choice(list("stu"), n)}
            if kind == "tables"
            else rng.normal(size=(n, 2))
            for n in (40, 40, 60, 60)
        ]
        asked = wi.audit_synthetic(*tables[:3], reference=tables[3], query=names)._material
        assert asked.names == tuple(names)
        for name, answers in zip(names, asked.answers.T, strict=True):
            alone = Experiment(answers[:40], answers[40:], names=(name,), directed=True)
            alarms[name] += run_audit(alone, confidence_level=LEVEL).advantage.lower > 0
    for count in alarms.values():
        judge(count, runs, DELTA / 2)
