"""What holds for the project as a whole: light imports, documented names, a full suite, pinned dependencies."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import whosin

ROOT = Path(__file__).parents[1]

HEAVY = [
    "dp_accounting",
    "matplotlib",
    "pandas",
    "rich",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "torch",
    "typer",
]


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=300, **options
    )


# --- the package ------------------------------------------------------------------------------------------------------


def test_import_is_light():
    done = run("-c", "import sys, whosin; print(*sorted(sys.modules))")
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "whosin" in loaded
    assert not loaded & set(HEAVY)


def test_a_package_index_gets_no_links_into_the_checkout():
    """An index has no other file than the README: a relative link would be a broken one."""
    core = pytest.importorskip("hatchling.metadata.core")
    plugins = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    shown = core.ProjectMetadata(str(ROOT), plugins).core.readme
    assert shown.startswith("# whosin")
    assert "](docs/" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]*)\)", shown))


def test_all_lists_the_public_names():
    assert len(whosin.__all__) == len(set(whosin.__all__))
    assert set(whosin.__all__) == {name for name in dir(whosin) if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(whosin.__all__))
def test_public_name_is_documented(name):
    thing = getattr(whosin, name)
    text = inspect.getdoc(thing) or ""
    assert text.strip(), f"whosin.{name} has no docstring"
    assert not text.startswith(f"{name}("), f"the docstring of whosin.{name} is only the one that dataclass writes"
    api = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    assert re.search(rf"\bwhosin\.{name}\b", api), f"docs/api.rst does not list whosin.{name}"


def test_types_are_shipped():
    assert (Path(whosin.__file__).parent / "py.typed").is_file()


# --- the suite --------------------------------------------------------------------------------------------------------


OWN_TARGETS = ("test_ray.py", "test_object_store.py")
"""Run by `make test-ray` and `make test-s3`, in environments of their own."""


def test_suite_is_complete(request):
    written = {
        path: set(re.findall(r"(?<!mark\.long)\n(?: {4})?def (test_\w+)\(", path.read_text(encoding="utf-8")))
        for path in (ROOT / "tests").rglob("*.py")
    }
    assert not [path for path, names in written.items() if names and not path.name.startswith("test_")]
    collected: dict[Path, set[str]] = {}
    for item in request.session.items:
        collected.setdefault(item.path, set()).add(item.name.partition("[")[0])
    if len(collected) < len(written) / 2 or request.config.getoption("-k"):
        return  # only a whole run can tell
    for package in ("torch", "fastapi", "sqlalchemy", "distributed"):
        pytest.importorskip(package)
    left_out = {
        path.relative_to(ROOT).as_posix(): sorted(names - collected.get(path, set()))
        for path, names in written.items()
        if path.parent.name != "long" and path.name not in OWN_TARGETS and names - collected.get(path, set())
    }
    assert not left_out


# --- the tree ---------------------------------------------------------------------------------------------------------


def tree() -> list[Path]:
    """Return the project's own files: those git knows or would add, or else all but hidden and built ones."""
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    except (FileNotFoundError, subprocess.CalledProcessError):
        skipped = {"_build", "_generated", "gallery", "build", "dist", "__pycache__"}
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part in skipped or part.startswith(".venv") for part in path.relative_to(ROOT).parts)
        ]
    return [path for path in paths if path.is_file()]


# Written in pieces, so that this file does not match. Not inside a longer path or a URL.
HOME = re.compile(r"(?<![\w.~-])(?:/(?:home|Users)/[A-Za-z]|/ro" + r"ot/|[A-Z]:\\Users\\)")


def test_home_paths_are_recognised():
    assert HOME.search("open('/home" + "/ada/data.csv')")
    assert HOME.search("C:" + "\\Users\\ada")
    assert not HOME.search("https://example.org/home/page and src/home/x")


def test_no_file_names_a_place_on_a_developers_machine():
    files = tree()
    assert ROOT / "pyproject.toml" in files
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if HOME.search(text) or (len(ROOT.parts) > 2 and str(ROOT) in text):
            found.append(path.relative_to(ROOT).as_posix())
    assert not found


# --- dependencies -----------------------------------------------------------------------------------------------------


def test_constraints_pin_every_dependency():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        pyproject["build-system"]["requires"],
        pyproject["project"]["dependencies"],
        *pyproject["project"]["optional-dependencies"].values(),
    ]
    named = [Requirement(line) for group in groups for line in group]
    needed = [requirement for requirement in named if requirement.name != "whosin"]
    assert needed

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            pinned, version = re.fullmatch(r"([\w.-]+)==([\w.+!]+)", line).groups()
            pins[canonicalize_name(pinned)] = version

    for requirement in needed:
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"constraints.txt does not pin {requirement.name}"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} excludes {version}"


# --- the container ----------------------------------------------------------------------------------------------------


def test_the_container_file_is_in_step_with_the_package():
    """Files, flags, port, health check, user and pins: it is built elsewhere, so that nothing else would notice."""
    pytest.importorskip("fastapi")
    import inspect
    import json

    from whosin.cli.serve import serve
    from whosin.web.guard import HEALTH

    text = re.sub(r"\\\n\s*", " ", (ROOT / "Containerfile").read_text(encoding="utf-8"))
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        assert all((ROOT / name).exists() for name in line.split()[:-1]), line
    # who runs it is not root, and owns the folder
    (user,) = re.findall(r"^USER (\d+)$", text, re.M)
    assert int(user) > 0
    assert f"useradd --uid {user} " in text
    entry = json.loads(re.search(r"^ENTRYPOINT (.+)$", text, re.M)[1])
    options = {f"--{name.replace('_', '-')}" for name in inspect.signature(serve).parameters} | {"--no-open"}
    assert entry[1] == "serve"
    assert {word for word in entry if word.startswith("--")} <= options
    port = entry[entry.index("--port") + 1]
    assert f"EXPOSE {port}\n" in text
    assert f"http://127.0.0.1:{port}{HEALTH}" in re.search(r"^HEALTHCHECK (.+)$", text, re.M)[1]
    assert f"VOLUME {entry[entry.index('--data-dir') + 1]}\n" in text
    # the lock that is installed holds what the page needs, and what builds the package
    assert "--require-hashes --no-deps" in text
    lock = (ROOT / "requirements" / "serve.txt").read_text(encoding="utf-8")
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = pyproject["project"]["optional-dependencies"]
    needed = [*pyproject["project"]["dependencies"], *pyproject["build-system"]["requires"]]
    needed += [line for extra in ("web", "report", "fast") for line in extras[extra]]
    for name in {canonicalize_name(Requirement(line).name) for line in needed} - {"whosin"}:
        assert re.search(rf"^{name}==", lock, re.M), f"requirements/serve.txt lacks {name}: make lock"
    documented = (ROOT / "docs" / "guide" / "container.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(--[a-z-]+)", documented)) - {"--build-arg"}
    assert {"--behind-proxy", "--login-header"} <= named
    assert named <= options | {"--json"}, named - options
