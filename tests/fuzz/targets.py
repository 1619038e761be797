"""What is fuzzed: every parser, the public functions, the commands and the page, each as a function of bytes.

A target returns, or raises one of ``EXPECTED``. Anything else, a numpy or Python warning with it, is a finding.
"""

import hashlib

from . import commands, measurements, pages, promises, records, stored, tables, trainings
from .support import EXPECTED, surroundings

ROOMS = (tables, stored, promises, measurements, trainings, records, pages, commands)
TARGETS = {name: target for room in ROOMS for name, target in room.TARGETS.items()}


def seeds(name):
    """Inputs from which the search starts: right ones, or long ones of any bytes."""
    room = next(room for room in ROOMS if name in room.TARGETS)
    return room.seeds(name) or [bytes(range(256)), bytes(64), *(_drawn(name, i) for i in range(4))]


def _drawn(name, number):
    return b"".join(hashlib.sha512(f"{name} {number} {i}".encode()).digest() for i in range(10))


def run(name, data):
    """Try one input; raise what is a finding."""
    with surroundings():
        try:
            TARGETS[name](data)
        except EXPECTED:
            return
