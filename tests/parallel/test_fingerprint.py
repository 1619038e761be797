"""Fingerprints: the same in every process, and another for every change that a result may depend on."""

import functools
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from whosin.errors import InputError
from whosin.parallel.fingerprint import fingerprint, versions

SOURCE = """
import functools
import threading
from dataclasses import dataclass

import numpy as np

DEPTH = 3
GRID = np.arange(4)

def helper(rows):
    return rows.mean() + 1.0

def estimate(rows, power=2):
    inner = lambda value: value ** power
    return inner(helper(rows)) * DEPTH + GRID.sum()

def again(rows, left=1):
    return again(rows, left - 1) if left else rows

SETTINGS = {"trim": 0.05, "kinds": frozenset({"mean", "sum"})}
STEPS = [1, 2]
LEVEL = np.float32(0.5)
KINDS = {"mean", "median", "sum"}
half = functools.partial(helper, 1)

@dataclass
class Options:
    trim: float

OPTIONS = Options(0.1)
LOCK = threading.Lock()

@functools.lru_cache
def table(size):
    return size + 3

def settled(rows):
    with LOCK:
        kind = "mean" if len(rows) in {7, "a", "b", "c", ("d", "e")} else "sum"
    return SETTINGS["trim"] + STEPS[0] + LEVEL + half() + OPTIONS.trim + table(4) + (kind in KINDS)

class Base:
    scale = 2
    grids = {"a": 1}

    @functools.cached_property
    def kept(self):
        return 11

    def fit(self, rows):
        return rows * self.scale

class Model(Base):
    @property
    def name(self):
        return "model"

    @staticmethod
    def shift(rows):
        return helper(rows) + 1
"""

CHANGES = [
    ("DEPTH = 3", "DEPTH = 4", "estimate"),
    ("np.arange(4)", "np.arange(5)", "estimate"),
    ("+ 1.0", "+ 2.0", "estimate"),
    ("+ 1.0", "+ 2.0", "Model"),
    ("power=2", "power=3", "estimate"),
    ("value ** power", "value * power", "estimate"),
    ("left - 1", "left - 2", "again"),
    ("scale = 2", "scale = 3", "Model"),
    ('"a": 1', '"a": 2', "Model"),
    ("return 11", "return 12", "Model"),
    ("0.05", "0.5", "settled"),
    ('frozenset({"mean"', 'frozenset({"max"', "settled"),
    ("[1, 2]", "[2, 2]", "settled"),
    ("float32(0.5)", "float64(0.5)", "settled"),
    ('"mean", "median"', '"mean", "mode"', "settled"),
    ("partial(helper, 1)", "partial(helper, 2)", "settled"),
    ("Options(0.1)", "Options(0.2)", "settled"),
    ("size + 3", "size + 4", "settled"),
    ('{7, "a"', '{8, "a"', "settled"),
    ("rows * self.scale", "rows + self.scale", "Model"),
    ('"model"', '"other"', "Model"),
    ("helper(rows) + 1", "helper(rows) + 2", "Model"),
]


def load(source):
    module = types.ModuleType("somebodys_module")
    exec(compile(source, "somebodys_module.py", "exec"), vars(module))
    sys.modules["somebodys_module"] = module
    return module


@pytest.fixture(autouse=True)
def _forget():
    yield
    sys.modules.pop("somebodys_module", None)


@pytest.mark.parametrize(("old", "new", "name"), CHANGES)
def test_a_change_of_the_code_is_seen(old, new, name):
    assert SOURCE.count(old) == 1
    first = fingerprint(getattr(load(SOURCE), name))
    assert fingerprint(getattr(load(SOURCE), name)) == first
    assert fingerprint(getattr(load(SOURCE.replace(old, new)), name)) != first


def test_objects_are_their_class_and_their_state():
    first = load(SOURCE).Model()
    key = fingerprint(first)
    first.extra = 1
    assert fingerprint(first) != key
    assert fingerprint(load(SOURCE.replace("scale = 2", "scale = 3")).Model()) != key
    assert fingerprint(load(SOURCE).Model()) == key
    assert fingerprint(load(SOURCE).Model().fit) != fingerprint(load(SOURCE).Model().shift)


def test_data_and_settings():
    def power(exponent):
        return lambda rows: rows**exponent

    parts = [
        np.zeros(3),
        np.zeros(3, dtype=np.float32),
        np.zeros((3, 1)),
        np.array([0.0, 0.0, 1e-300]),
        [0.0] * 3,
        (0.0,) * 3,
        3,
        3.0,
        "3",
        None,
        DecisionTreeClassifier(),
        DecisionTreeClassifier(max_depth=3),
        power(2),
        power(3),
        functools.partial(np.mean, axis=0),
        functools.partial(np.mean, axis=1),
        np.median,
    ]
    keys = [fingerprint(part) for part in parts]
    assert len(set(keys)) == len(keys)
    assert keys == [fingerprint(part) for part in parts]
    assert fingerprint(1, 2) != fingerprint(2, 1) != fingerprint((1, 2))


OTHER = """
import numpy as np
from tests_source import Model, estimate, settled
from whosin.parallel.fingerprint import fingerprint
data = np.arange(9.0), {"a": 1, "b": {2, 3, "x", "y"}}, frozenset("abcdef")
print(fingerprint(estimate, settled, Model(), data, "text" + "s"))
"""


def test_every_process_gives_the_same(tmp_path):
    (tmp_path / "tests_source.py").write_text(SOURCE)
    found = {
        subprocess.run(
            [sys.executable, "-c", OTHER],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }
    assert len(found) == 1


def test_what_cannot_be_pickled(tmp_path):
    with open(tmp_path / "file", "w") as file, pytest.raises(InputError, match="can be pickled"):
        fingerprint(file)


def test_versions():
    found = versions()
    assert found["Python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found["numpy"] == np.__version__
    assert set(found) == {"Python", "whosin", "numpy", "scipy", "scikit-learn", "joblib"}
