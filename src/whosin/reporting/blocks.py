"""What a report is made of: a verdict, and sections of paragraphs, lists, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

__all__ = ["Block", "Card", "Code", "Grid", "Heading", "Items", "Picture", "Pictures", "Report", "Section", "Text"]

LONGEST_LEAD = 140
"""Letters of a verdict that are set in bold."""


@dataclass(frozen=True)
class Text:
    """A paragraph: "plain", "answer" (the sentence to remember), "small" or "warning"."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Card:
    """The verdict: its state as a word with an icon, so that nothing rests on colour alone, and the sentence."""

    kind: ClassVar[str] = "card"
    state: str
    text: str

    @property
    def lead(self) -> str:
        """The first sentence, or what stands before its colon if it is long."""
        first = self.text.partition(". ")
        found = "".join(first[:2]) if len(first[0]) <= LONGEST_LEAD else "".join(self.text.partition(": ")[:2])
        return found.rstrip()

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
    alt: str
    caption: str


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side where there is room."""

    kind: ClassVar[str] = "pictures"
    pictures: Sequence[Picture]


Block = Text | Card | Heading | Items | Code | Grid | Pictures


@dataclass(frozen=True)
class Section:
    """A numbered part of the report."""

    anchor: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


@dataclass(frozen=True)
class Report:
    """Everything that the template fills in."""

    title: str
    about: str
    """What the report is about, in half a sentence."""
    sections: Sequence[Section]
    verdict: Card | None = None
    """What stands before everything else."""
