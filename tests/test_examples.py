"""The examples of docstrings are run; every public verb and class has one, and tells the defaults of its arguments."""

import doctest
import importlib
import inspect
import os
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import whosin

SOURCE = Path(whosin.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "api.rst"
MODULES = sorted(
    ".".join(("whosin", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
KNOWN = {"np": np, "wi": whosin}
"""What every example may use without importing it."""


NEED_TORCH = ("auditing.models.generators.latents", "training.dpsgd", "training.torch_adapter", "training.torch_model")


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    if name.endswith(NEED_TORCH) and not find_spec("torch") and os.environ.get("WHOSIN_REQUIRE_EXTRAS") != "1":
        pytest.skip("torch is not installed")
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder().find(module, extraglobs=KNOWN) if test.examples]
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    for test in tests:
        runner.run(test, out=told.append)
    assert tests
    assert not runner.failures, "".join(told)


def public() -> dict[str, object]:
    """What users call: functions and classes of whosin, of its modules, and of the page of the API; no exceptions."""
    names = set(re.findall(r"^   (whosin\.[\w.]+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for name in whosin.__all__:
        inner = getattr(getattr(whosin, name), "__all__", None)
        names |= {f"whosin.{name}"} if inner is None else {f"whosin.{name}.{each}" for each in inner}
    found = {}
    for name in sorted(names):
        module, _, attribute = name.rpartition(".")
        found[name] = getattr(importlib.import_module(module), attribute)
    return {
        name: thing
        for name, thing in found.items()
        if inspect.isroutine(thing) or (inspect.isclass(thing) and not issubclass(thing, BaseException))
    }


def test_public_names_have_examples():
    assert len(public()) > 150
    assert not [name for name, thing in public().items() if ">>> " not in (thing.__doc__ or "")]


def arguments(doc: str) -> dict[str, str]:
    """The arguments that a docstring describes, each with all that is said about it."""
    section = re.search(r"\nParameters\n-+\n(.*?)(\n\n\w+\n---|\Z)", inspect.cleandoc(doc), re.DOTALL)
    entries = re.findall(r"^(\S.*)((?:\n(?:    .*)?)*)", section[1], re.MULTILINE) if section else []
    return {name.strip(" *"): head + body for head, body in entries for name in head.split(" : ")[0].split(",")}


def test_defaults_are_told():
    """Where a docstring describes arguments, it says of each that may be left out what it is then."""
    silent = []
    for name, thing in public().items():
        told = arguments(thing.__doc__ or "")
        given = inspect.signature(thing).parameters.values() if told else ()
        optional = [one.name for one in given if one.default is not one.empty]
        silent += [f"{name}({one})" for one in optional if not re.search("default|optional|As in", told.get(one, ""))]
    assert not silent
