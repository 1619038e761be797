"""The examples of docstrings are run, and every public verb and class has one."""

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import whosin

SOURCE = Path(whosin.__file__).parent
MODULES = sorted(
    ".".join(("whosin", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
KNOWN = {"np": np, "wi": whosin}
"""What every example may use without importing it."""


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder().find(module, extraglobs=KNOWN) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    for test in tests:
        runner.run(test, out=told.append)
    assert tests
    assert not runner.failures, "".join(told)


def public() -> dict[str, object]:
    """What users call: functions and classes of whosin and of its public modules, exceptions left out."""
    found = {}
    for name in whosin.__all__:
        thing = getattr(whosin, name)
        inner = {f"{name}.{each}": getattr(thing, each) for each in getattr(thing, "__all__", ())}
        found |= inner if inspect.ismodule(thing) else {name: thing}
    exceptions = {name for name, thing in found.items() if inspect.isclass(thing) and issubclass(thing, BaseException)}
    return {name: thing for name, thing in found.items() if callable(thing) and name not in exceptions}


# Results that verbs return, and what is left to do. The list only becomes shorter.
WITHOUT = set(
    """
    Audit DPSGDAdapter Estimate Guarantee Ledger ReferenceModels TorchAdapter TorchModel audit_synthetic
    audit_training auditing.Audit auditing.Band auditing.Comparison auditing.Copies auditing.Dependence
    auditing.Drift auditing.Estimate auditing.Experiment auditing.GroupRow auditing.GroupTable auditing.Individual
    auditing.OneRunAudit auditing.OneRunComparison auditing.ReleaseSize auditing.RevealingColumns
    auditing.SyntheticAudit auditing.TprAtFpr auditing.Verdict auditing.audit_synthetic auditing.count_copies
    auditing.run_audit bounds.Bound bounds.BoundsTable ledger.Budget ledger.Composition ledger.Entry ledger.Ledger
    ledger.Total ledger.Verification mechanisms.AdditiveMechanism mechanisms.FiniteMechanism mechanisms.KMax
    mechanisms.NormExponential mechanisms.SecureSource mechanisms.SeededSource mechanisms.Source
    mechanisms.Subsampled population.PopulationPrivacy population.exponential population.gaussian population.laplace
    population.largest_epsilon protect protection.Certificate protection.JointCertificate protection.Release
    protection.SumQuery protection.protect report risks.Risk risks.resolve tables.Encoded tables.Preview
    tables.StreamEncoder tables.Table tables.TableEncoder tables.TableStream tables.as_stream tables.as_table
    tables.duplicate_rows tables.is_streamable tables.match_tables tables.numeric_records tables.read_numeric
    tables.row_groups tables.shared_rows train_dpsgd worlds.ContinuousGame worlds.FiniteGame worlds.Game
    worlds.World worlds.bounded_independent worlds.explicit
    """.split()  # noqa: SIM905
)


def test_public_names_have_examples():
    lacking = {name for name, thing in public().items() if ">>> " not in (inspect.getdoc(thing) or "")}
    assert lacking <= WITHOUT, "new public names need an Examples section"
    assert not {name for name in WITHOUT if name not in public()}
