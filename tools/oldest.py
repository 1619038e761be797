"""Print the oldest versions that ``pyproject.toml`` allows as pins, one a line, for ``make test-oldest``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(line for name in ("fast", "report", "test") for line in extras[name])]
for line in wanted:
    requirement = Requirement(line)
    floors = [part.version for part in requirement.specifier if part.operator == ">="]
    if floors and requirement.name != "whosin":
        print(f"{requirement.name}=={floors[0]}")
