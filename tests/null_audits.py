"""Judging audits in which there is nothing to find."""

from dataclasses import replace

from scipy.stats import binom

from whosin.auditing.measuring.guess_ways import SeveralWays


def judge_alarms(audits):
    """Hold the alarms of null audits against their chance, (1 - level)/2, at 95 % and at 50 %.

    Few audits say little about a chance of 2.5 %, and more about one of 25 %; the second look costs nothing. The judge
    is no rubber stamp: limits that are nothing but the estimates do not pass.
    """
    found = list(audits)
    runs = len(found)
    for level in (0.95, 0.5):
        looks = (one if one.confidence_level == level else replace(one, confidence_level=level) for one in found)
        alarms = sum(look.advantage.lower > 0 for look in looks)
        chance = binom.sf(alarms - 1, runs, (1 - level) / 2)
        assert chance > 1e-3, f"{alarms} of {runs} null audits found a leak at level {level}: chance {chance:.1g}"
    estimates = sum(one.plug_in > 0 for one in found)
    assert binom.sf(estimates - 1, runs, 0.25) < 1e-3, "the judge would let anything pass"


def look_once(monkeypatch, epsilon):
    """Let audits of one run say no more than whether their limit is above ε: one chance instead of some seventeen.

    The chance of so many right guesses rises with ε, so it is where the chance at ε is at most α.
    """

    def limit(ways):
        return 2.0 * epsilon if ways.p_value(epsilon) <= ways.alpha else 0.0

    monkeypatch.setattr(SeveralWays, "epsilon_lower", limit)
