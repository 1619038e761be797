"""What a report is made of: a verdict card, and sections of paragraphs, lists, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from whosin.numerics.rounding import sentence


@dataclass(frozen=True)
class Text:
    """A paragraph: "plain", "answer" (the sentence to remember), "small" or "warning"."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Card:
    """The first screen: the verdict as a word with an icon, so that nothing rests on colour alone, and what to do."""

    kind: ClassVar[str] = "card"
    state: str
    title: str
    headline: str
    details: str
    people: str = ""
    """A hundred people (SVG), and what they show."""
    people_note: str = ""
    gauge: str = ""
    """The limits between 0 and 1 (SVG)."""
    level: str = ""
    number: tuple[str, str] | None = None
    """One large number, and what it counts."""
    number_title: str = ""
    to_do: tuple[str, ...] = ()
    note: str = ""

    @property
    def icon(self) -> str:
        """A sign for the state."""
        return _LOOKS[self.state][0]

    @property
    def tone(self) -> str:
        """The colour of the state: "bad", "good" or "open"."""
        return _LOOKS[self.state][1]


_LOOKS = {
    "leak": ("✕", "bad"),
    "exceeds": ("✕", "bad"),
    "within": ("✓", "good"),
    "undecided": ("?", "open"),
    "none found": ("?", "open"),
    "no verdict": ("!", "bad"),
}


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    kind: ClassVar[str] = "items"
    lines: Sequence[str]


@dataclass(frozen=True)
class Code:
    """A command or a call, as typed."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Grid:
    """A table whose rows begin with what they are about; cells of the ``words`` columns are text, others numbers."""

    kind: ClassVar[str] = "grid"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Picture:
    """A drawing with what it shows in words, for readers who do not see it, and a caption for all."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room."""

    kind: ClassVar[str] = "pictures"
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Fold:
    """What is opened by who wants to read it."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: Sequence[Block]


Block = Text | Card | Heading | Items | Code | Grid | Pictures | Fold


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    anchor: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)
    half: bool = False
    """Whether half the width suffices, beside another section, where there is room."""
    folded: bool = False
    """Whether it is opened by who wants to read it."""


def question(text: str) -> Section:
    """Return the section on what was asked."""
    return Section("question", "The question", [Text(text)])


def assumed(lines: Sequence[str], *before: Block) -> Section:
    """Return the section on what a result rests on."""
    return Section("assumed", "What was assumed", [*before, Items([sentence(line) for line in lines])], folded=True)


def untested(lines: Sequence[str], title: str = "What was not tested") -> Section:
    """Return the section on what a result says nothing about."""
    return Section("untested", title, [Items(lines)], folded=True)


@dataclass(frozen=True)
class Report:
    """Everything that the template fills in."""

    title: str
    about: str
    sections: Sequence[Section]
    verdict: Card | None = None
    data: str = ""
    """The data in a line, with rows and columns."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
