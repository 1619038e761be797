"""What targets share: numbers and words out of bytes, a folder of their own, and what counts as a finding."""

import contextlib
import json
import math
import os
import struct
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from whosin.errors import AssumptionWarning, WhosinError

EXPECTED = (WhosinError,)
FOLDER = "WHOSIN_FUZZ_FOLDER"
"""Variable that names the folder for the files of the targets; whoever sets it makes and removes the folder."""
MARK = "<zq"
"""Begins hostile names: it must never stand in a page as it is."""


def place(name):
    """Return a path inside the folder of this run."""
    return Path(os.environ[FOLDER]) / name


def file(name, data):
    """Write a file in the folder of this run."""
    path = place(name)
    path.write_bytes(data)
    return path


class Bytes:
    """Takes numbers and words off the front of some bytes; zeros after their end."""

    SPECIAL = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e-12, 1e300, 5e-324, 709.0, 745.0, math.inf, -math.inf, math.nan)
    NAMES = ("a", "b", "", " ", "a,b", '"', "$\\frac{", "{}", "\u202e", "%s", "nan", "\n", "漢", "=1+1")

    def __init__(self, data):
        self.data = bytes(data)

    def take(self, count):
        taken, self.data = self.data[:count], self.data[count:]
        return taken.ljust(count, b"\0")

    def whole(self, below):
        return int.from_bytes(self.take(2), "little") % below

    def number(self):
        """A float of any size, one of those at which formulas break, or one in [0, 1]."""
        kind = self.whole(4)
        if kind == 0:
            return self.SPECIAL[self.whole(len(self.SPECIAL))]
        if kind == 1:
            return struct.unpack("<d", self.take(8))[0]
        share = int.from_bytes(self.take(6), "little") / 2**48
        return share if kind == 2 else -20.0 * math.log(share) if share > 0.0 else 20.0

    def value(self):
        """A number, or something that is none."""
        odd = (None, "1", True, 1j, [0.5], (), {}, 10**400, np.float64(0.5), np.array([0.5]), b"1")
        return self.number() if self.whole(8) else odd[self.whole(len(odd))]

    def rare(self, often=12):
        """Whether this is one of the few draws that go wrong; never after the end of the bytes."""
        return self.whole(often) == often - 1

    def usual(self, *values):
        """One of some values that make sense, or rarely anything."""
        return self.value() if self.rare() else self.choice(values)

    def odd(self, values, wrong):
        """One of some values that make sense, or rarely one that makes none."""
        return self.choice(wrong if self.rare() else values)

    def share(self):
        """A number from 0 to 1, the ends and what lies near them more often; rarely anything."""
        if self.rare():
            return self.value()
        edge = (0.5, 0.1, 0.0, 1.0, 1e-12, 1.0 - 2**-53, 5e-324, 2**-53, 0.25, 0.95)
        return self.choice(edge) if self.whole(2) == 0 else int.from_bytes(self.take(6), "little") / 2**48

    def amount(self):
        """A number from 0 on, of any size; rarely anything."""
        if self.rare():
            return self.value()
        edge = (1.0, 0.5, 3.0, 0.0, 1e-12, 5e-324, 40.0, 709.0, 745.0, 1e300, math.inf)
        return self.choice(edge) if self.whole(2) == 0 else abs(self.tame())

    def tame(self):
        """A finite number with few digits, of a size between 1e-4 and 1e4."""
        return struct.unpack("<b", self.take(1))[0] * 10.0 ** (self.whole(7) - 4)

    def text(self, length=12):
        return self.take(self.whole(length)).decode("utf-8", "replace")

    def name(self):
        """A name that a page, a formula or a file format may stumble over."""
        if self.whole(2):
            return f"{MARK} {self.text()}>"
        return self.NAMES[self.whole(len(self.NAMES))]

    def label(self):
        """A name, which may hold half a letter: Python's strings can, frames and files cannot."""
        return self.name() if self.whole(8) else "\ud800"

    def choice(self, options):
        return options[self.whole(len(options))]

    def numbers(self, *shape):
        """An array of numbers, mostly tame ones, often equal ones; where the first draw says so, of any."""
        size, kind = math.prod(shape), self.whole(8)
        if kind == 7:
            return np.array([self.number() for _ in range(size)], dtype=np.float64).reshape(shape)
        table = np.frombuffer(self.take(size), dtype=np.int8) / (32.0 if kind < 5 else 1e-150 if kind == 5 else 1e150)
        return table.reshape(shape)

    def edits(self, content):
        """Return the content with some bytes changed, put in or cut out."""
        changed = bytearray(content)
        for _ in range(1 + self.whole(6)):
            spot = int.from_bytes(self.take(4), "little") % (len(changed) + 1)
            kind, piece = self.whole(4), self.take(self.whole(9))
            if kind == 0:
                del changed[spot : spot + int.from_bytes(piece[:2], "little")]
            elif kind == 1:
                changed[spot:spot] = piece
            else:
                changed[spot : spot + len(piece)] = piece
        return bytes(changed)


class _Tags(HTMLParser):
    """Every element with the names of its attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.links = set(), set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.found.update(f"{tag} {key}" for key, _ in attrs if key.startswith("on"))
        self.links.update(value for key, value in attrs if key in ("href", "src", "action"))


def check_page(text):
    """Refuse a page in which a hostile name is markup, or anything runs or is fetched."""
    assert MARK not in text
    tags = _Tags(text)
    bad = {tag for tag in tags.found if tag in ("script", "img", "iframe", "object", "zq") or " on" in tag}
    assert not bad, bad
    assert all(link is not None and link.startswith("#") for link in tags.links), tags.links


def check_json(content):
    """Refuse what is no JSON, NaN and infinity with it."""
    json.dumps(content, allow_nan=False)


def check_share(*values):
    """Refuse what is no probability."""
    for value in values:
        rates = np.asarray(value)
        assert ((rates >= 0.0) & (rates <= 1.0)).all(), values


@contextlib.contextmanager
def patched(where, **values):
    """Replace attributes of a module or class for a while."""
    before = {name: getattr(where, name) for name in values}
    for name, value in values.items():
        setattr(where, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(where, name, value)


@contextlib.contextmanager
def surroundings():
    """Work inside the folder, with warnings as errors; warnings that say what was assumed are none."""
    kept = {name: os.environ.get(name) for name in ("WHOSIN_LEDGER", "XDG_DATA_HOME")}
    here = Path.cwd()
    os.environ.update(WHOSIN_LEDGER=str(place("default.db")), XDG_DATA_HOME=str(place("home")))
    os.chdir(place("."))
    try:
        with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", AssumptionWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        os.chdir(here)
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
