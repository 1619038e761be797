"""What a report is made of: sections of paragraphs, lists, tables and pictures. The template knows no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

__all__ = ["Block", "Code", "Grid", "Heading", "Items", "Picture", "Pictures", "Report", "Section", "Text"]


@dataclass(frozen=True)
class Text:
    """A paragraph: "plain", "answer" (the sentence to remember), "small" or "warning"."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = "plain"


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


Block = Text | Heading | Items | Code | Grid | Pictures


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
