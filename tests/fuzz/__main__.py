"""``python -m tests.fuzz --list``, ``python -m tests.fuzz TARGET --seconds 60 [--seed 1]``.

A finding ends the run with a code other than 0, and its bytes are saved under ``.fuzz/``; run them again with
``python -m tests.fuzz TARGET --input .fuzz/TARGET-crash-…``.
"""

import argparse
import sys
from pathlib import Path

from tests.fuzz.targets import TARGETS, run, seeds


def main():
    """Parse the arguments and fuzz."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=TARGETS)
    parser.add_argument("--list", action="store_true", help="print the targets, one a line")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0 takes a new one each time")
    parser.add_argument("--input", type=Path, help="run this file once, without atheris")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return
    if options.target is None:
        parser.error("a target is needed; --list prints them")
    if options.input is not None:
        run(options.target, options.input.read_bytes())
        return
    fuzz(options.target, options.seconds, options.seed)


def fuzz(target, seconds, seed):
    """Let atheris look for inputs that reach new branches of whosin, until one is a finding or the time is over."""
    import atheris

    folder = Path(".fuzz")
    corpus = folder / target
    corpus.mkdir(parents=True, exist_ok=True)
    for i, start in enumerate(seeds(target)):
        (corpus / f"seed-{i}").write_bytes(start)
    flags = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=20", "-rss_limit_mb=3000", "-max_len=4096"]
    places = [f"-artifact_prefix={folder}/{target}-", str(corpus)]
    for name, module in list(sys.modules.items()):
        if name.startswith("whosin.") and module is not None:
            _instrument(atheris, module)
    atheris.Setup([sys.argv[0], *flags, *places], lambda data: run(target, data))
    atheris.Fuzz()


def _instrument(atheris, module):
    """Count the branches of a module's functions."""
    import types

    for key, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
            vars(module)[key] = atheris.instrument_func(value)


if __name__ == "__main__":
    main()
