"""Workers import nothing from the folder that their caller happens to be in, and all that the caller itself can."""

import os
import subprocess
import sys

import pytest

from whosin.parallel import tasks as parallel
from whosin.parallel.safe_path import safe_path

TRAP = "import pathlib; pathlib.Path(__file__).with_name('touched').touch(); raise ImportError('not this one')"
TASK = """
import os
def {name}(item):
    return os.getpid(), 2 * item
"""
SCRIPT = """
from whosin.parallel import tasks as parallel
from {module} import {name}
if __name__ == "__main__":
    found = parallel.run({name}, [1, 2, 3, 4], n_jobs=2)
    import os
    assert all(pid != os.getpid() for pid, _ in found)
    print([value for _, value in found])
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with modules of names that workers import."""
    place = tmp_path / "here"
    place.mkdir()
    for name in ("numpy", "polars", "scipy", "joblib", "whosin", "cloudpickle", "threadpoolctl"):
        (place / f"{name}.py").write_text(TRAP)
    return place


def run(folder, *arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (folder / "touched").exists()
    return done.stdout.strip()


def test_workers_pass_over_the_current_folder_and_find_the_modules_of_a_script(folder, tmp_path):
    (tmp_path / "beside.py").write_text(TASK.format(name="double"))
    (tmp_path / "script.py").write_text(SCRIPT.format(module="beside", name="double"))
    assert run(folder, str(tmp_path / "script.py")) == "[2, 4, 6, 8]"


def test_workers_find_what_the_caller_finds_in_the_current_folder(tmp_path):
    """A notebook has the current folder in its path, and its workers get it from there."""
    (tmp_path / "near.py").write_text(TASK.format(name="twice"))
    assert run(tmp_path, "-c", SCRIPT.format(module="near", name="twice")) == "[2, 4, 6, 8]"


@pytest.mark.parametrize("before", [None, "", "yes"])
def test_the_variable_is_as_it_was_afterwards(before, monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with safe_path:
        with safe_path:
            assert os.environ["PYTHONSAFEPATH"] == "1"
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before
    with pytest.raises(ZeroDivisionError):
        parallel.run((1).__truediv__, [1, 0], n_jobs=2)
    assert os.environ.get("PYTHONSAFEPATH") == before
