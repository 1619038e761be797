"""Write ``requirements/*.txt``: the pins of ``constraints.txt`` with the SHA-256 of every file of those versions.

    python tools/lock.py            # after constraints.txt or the dependencies in pyproject.toml changed

pip itself says what each set needs (a dry run under the constraints); the hashes are those that the index lists, for
all platforms, so that a lock made on one machine holds on another. torch is left out: its builds differ by machine
(CPU, CUDA), so the Makefile installs the pinned version by itself.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
BUILD = ("hatchling", "hatch-vcs", "editables")
UNHASHED = {"torch", "whosin"}
SETS = {
    "demo": (*BUILD, ".[fast,report]"),
    "dev": (*BUILD, ".[dev]"),
    "fuzz": ("atheris",),
    "mutate": ("mutmut",),
    "serve": (*BUILD, ".[fast,web,excel]"),
    "tools": ("pip-audit", "cyclonedx-bom"),
}


def normal(name: str) -> str:
    """Return a package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(wanted: tuple[str, ...]) -> dict[str, str]:
    """Return name → version of all that ``wanted`` needs, under the constraints."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run(
        [*command, "-c", "constraints.txt", *wanted], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    found = [item["metadata"] for item in json.loads(done.stdout)["install"]]
    return {normal(item["name"]): item["version"] for item in found if normal(item["name"]) not in UNHASHED}


def index() -> str:
    """Return the address of the index that pip is set up for."""
    set_up = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
    if set_up.returncode == 0:
        return set_up.stdout.decode().strip().rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")


def hashes(address: str, name: str, version: str) -> list[str]:
    """Return the SHA-256 of every file that the index has for one version."""
    from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    with urllib.request.urlopen(f"{address}/{name}/", timeout=180) as page:
        links = re.findall(r'href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"', html.unescape(page.read().decode()))
    found = set()
    for file, digest in links:
        try:
            known = parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
        except (InvalidSdistFilename, InvalidWheelFilename, InvalidVersion):
            continue
        if known == Version(version):
            found.add(digest)
    if not found:
        raise SystemExit(f"the index lists no file of {name} {version}")
    return sorted(found)


def main() -> None:
    """Write every lock, and add to constraints.txt the pins that were not there."""
    address, known = index(), dict[tuple[str, str], list[str]]()
    pinned = {
        normal(line.split("==")[0]): line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    }
    FOLDER.mkdir(exist_ok=True)
    for title, wanted in SETS.items():
        lines = [f"# Written by tools/lock.py: {' '.join(wanted)} under constraints.txt, with hashes. Do not edit."]
        for name, version in sorted(resolve(wanted).items()):
            pinned.setdefault(name, f"{name}=={version}")
            key = (name, version)
            known[key] = known.get(key) or hashes(address, name, version)
            lines.append(
                " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in known[key])])
            )
        (FOLDER / f"{title}.txt").write_text("\n".join(lines) + "\n")
        print(f"requirements/{title}.txt: {len(lines) - 1} packages")
    head = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("#")]
    (ROOT / "constraints.txt").write_text("\n".join([*head, *(pinned[name] for name in sorted(pinned))]) + "\n")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
