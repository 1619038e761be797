"""Every script of benchmarks/, experiments/ and tools/ starts: ``--help`` says what it does."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "experiments", "tools")
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "\nif __name__ == " in path.read_text(encoding="utf-8") and not path.name.endswith("_side.py")
)


def start(script: str) -> None:
    """Run a script of this tree in this process; those of the package experiments as ``python -m`` does."""
    if script.startswith("experiments/"):
        name = script.removesuffix(".py").replace("/", ".")
        sys.modules.pop(name, None)  # another test may have imported it, of which runpy warns
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(ROOT / script), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_what_a_script_does(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.setattr(sys, "path", [str((ROOT / script).parent), str(ROOT), *sys.path])
    with pytest.raises(SystemExit) as ended:
        start(script)
    assert ended.value.code == 0
    usage, description, *_ = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: ")
    assert len(description) > 20


def test_scripts_are_found():
    assert {script.split("/")[0] for script in SCRIPTS} == set(FOLDERS)
    assert len(SCRIPTS) >= 18
