"""``python -m tests.fuzz --list``, ``python -m tests.fuzz TARGET --seconds 60 [--seed 1]``.

A finding ends the run with a code other than 0, and its bytes are saved under ``.fuzz/``; run them again with
``python -m tests.fuzz TARGET --input .fuzz/TARGET-crash-…``.
"""

import argparse
import contextlib
import importlib.util
import io
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = "WHOSIN_FUZZ_FOLDER"
COMPILED = ("auditing.releases.matching.compiled", "population.exponential.kernels")
"""Modules whose functions numba compiles, which it does not do with counted branches."""


def main():
    """Parse the arguments and fuzz, in a process of its own: the fuzzer ends without cleaning up."""
    if FOLDER in os.environ:
        work(parsed())
        return
    options = parsed()
    if options.list:
        from tests.fuzz.targets import TARGETS

        print("\n".join(TARGETS))
        return
    if options.target is None:
        sys.exit("a target is needed; --list prints them")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="whosin-fuzz-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]]
        environment = {**os.environ, FOLDER: folder, "TMPDIR": folder, "OMP_NUM_THREADS": "1"}
        code = subprocess.run(command, env=environment, check=False).returncode
    sys.exit(code)


def parsed():
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?")
    parser.add_argument("--list", action="store_true", help="print the targets, one a line")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0 takes a new one each time")
    parser.add_argument("--input", type=Path, help="run this file once, without atheris")
    return parser.parse_args()


def work(options):
    """Run one input, or look for others."""
    if options.input is not None:
        from tests.fuzz.targets import run

        run(_known(options.target), options.input.read_bytes())
        return
    fuzz(options.target, options.seconds, options.seed)


def _known(target):
    from tests.fuzz.targets import TARGETS

    if target not in TARGETS:
        sys.exit(f"there is no target {target!r}; --list prints them")
    return target


def fuzz(target, seconds, seed):
    """Let atheris look for inputs that reach new branches of whosin, until one is a finding or the time is over."""
    import atheris

    packages = importlib.util.find_spec("whosin").submodule_search_locations
    with atheris.instrument_imports(include=["whosin"], exclude=[f"whosin.{name}" for name in COMPILED]):
        with contextlib.redirect_stderr(io.StringIO()):  # all that is imported late counts branches, before the clock
            from tests.fuzz.targets import run, seeds

            for module in pkgutil.walk_packages(packages, "whosin."):
                if not module.name.endswith("__main__"):
                    importlib.import_module(module.name)
        folder = Path(".fuzz").resolve()
        corpus = folder / _known(target)
        corpus.mkdir(parents=True, exist_ok=True)
        for i, start in enumerate(seeds(target)):
            (corpus / f"seed-{i}").write_bytes(start)
        flags = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=20", "-rss_limit_mb=3000", "-max_len=4096"]
        places = [f"-artifact_prefix={folder}/{target}-", str(corpus)]
        atheris.Setup([sys.argv[0], *flags, *places], lambda data: run(target, data))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
