"""Text files larger than memory: read twice in pieces, and written as columns to a temporary file.

The first reading says what all cells of a column allow (:class:`whosin.tables.cells.Facts`), the second one reads them
in the form that follows. So the cells are those that reading the whole file at once would give.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.cells import Cells, Facts, Forms
from whosin.tables.dialect import Dialect, recognised_encoding, single_blanks
from whosin.tables.text import Layout, Piece, irregular_frames

if TYPE_CHECKING:
    import polars as pl

PIECE = 2**25
"""Bytes that are read at a time."""
_LONGEST = 2**28
"""Bytes within which a line must end."""
_HEAD = 2**20
_PARTS_OF_MARK = (codecs.BOM_UTF8[:1], codecs.BOM_UTF8[:2])

Lines = NDArray[np.int64]


@dataclass(frozen=True)
class TextBlocks:
    """A text file that is read in pieces; made by :meth:`of`."""

    open: Callable[[], IO[bytes]]
    encoding: str
    layout: Layout
    forms: Forms
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, open_file: Callable[[], IO[bytes]], origin: str, dialect: Dialect, ending: str, raw: Sequence[str] = ()
    ) -> TextBlocks:
        """Read a file once, to see how it is written and what its columns are. Memory: a few pieces."""
        with open_file() as file:
            encoding, remark = recognised_encoding(file, origin, dialect.encoding)
        head = _head(open_file, encoding, origin)
        layout = Layout.of(head, origin, dialect, ending)
        if layout.separator == " ":
            layout = replace(Layout.of(single_blanks(head), origin, layout.dialect, ending), remarks=layout.remarks)
        layout = layout.without_numbers(raw)
        if layout.separator != "," and layout.dialect.decimal is None and layout.decimal == ".":
            layout = layout.without_numbers(layout.names)  # a later piece may have decimal commas
        facts = {name: Facts() for name in layout.names}
        some = False
        for columns, _ in _columns(open_file, encoding, layout):
            some = True
            facts = {name: facts[name] + layout.facts(name, columns[name]) for name in layout.names}
        if not some:
            raise InputError(f"{origin} has names but no rows")
        forms = layout.forms(facts, raw)
        said = () if remark is None else (remark,)
        return cls(open_file, encoding, layout, forms, (*said, *layout.remarks, *forms.remarks))

    def frames(self) -> Iterator[pl.DataFrame]:
        """Read the file once more and yield its cells in their forms."""
        import polars as pl

        texts = [name for name, form in self.forms.chosen.items() if form == "text"]
        layout = self.layout.without_numbers(texts)
        for columns, lines in _columns(self.open, self.encoding, layout):

            def where(name: str, row: int, lines: Lines = lines) -> str:
                return f"{layout.origin} line {lines[row]} column {name!r}"

            read = {name: self.forms.read(name, columns[name], where) for name in self.forms.chosen}
            yield pl.DataFrame(
                [(cells.cast(pl.String) if name in texts else cells).alias(name) for name, cells in read.items()]
            )


def _head(open_file: Callable[[], IO[bytes]], encoding: str, origin: str) -> bytes:
    head = b""
    for part in _utf8(open_file, encoding, origin):
        head += part
        if len(head) >= _HEAD:
            break
    return head


def _columns(
    open_file: Callable[[], IO[bytes]], encoding: str, layout: Layout
) -> Iterator[tuple[Mapping[str, Cells], Lines]]:
    """Yield the columns of one piece after the other, and the line of each row."""
    parts = _pieces(open_file, encoding, layout)
    for data, line in parts:
        found = Piece(data, 0, line).found(layout)
        if found is not None:
            yield found[1:]
            continue
        rest: IO[bytes] = io.BytesIO(data)
        if b'"' in data:  # quotes that are odd may reach into the next piece: the csv module reads on to the end
            rest = io.BufferedReader(_Joined(data, parts))
        for frame, lines in irregular_frames(rest, layout, line):
            made = (Cells.of(frame.to_series(i), layout.dialect) for i in range(frame.width))
            yield dict(zip(layout.names, made, strict=True)), lines


def _pieces(open_file: Callable[[], IO[bytes]], encoding: str, layout: Layout) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, cut at a line end outside of quotes, and the number of the first; the names are left out."""
    waiting, skip, line = b"", layout.first_line - 1, layout.first_line
    blanks = single_blanks if layout.separator == " " else bytes
    for part in _utf8(open_file, encoding, layout.origin):
        waiting += part
        while skip and b"\n" in waiting:
            waiting, skip = waiting[waiting.find(b"\n") + 1 :], skip - 1
        if skip or len(waiting) < PIECE:
            continue
        end = _last_line_end(waiting)
        if end == 0 and len(waiting) > _LONGEST:
            raise InputError(
                f"{layout.origin} line {line} must end within {_LONGEST} bytes, got a longer one: a quote may be open"
            )
        if end:
            yield blanks(waiting[:end]), line
            line, waiting = line + waiting.count(b"\n", 0, end), waiting[end:]
    if not skip and waiting.strip():
        yield blanks(waiting), line


def _last_line_end(data: bytes) -> int:
    """Return the place after the last line end with an even number of quotes before it, 0 if there is none."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    outside = ends[np.searchsorted(np.flatnonzero(text == ord('"')), ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _utf8(open_file: Callable[[], IO[bytes]], encoding: str, origin: str) -> Iterator[bytes]:
    """Yield a file in UTF-8 with plain line ends."""
    decoder = codecs.getincrementaldecoder(encoding)("whosin_latin_1" if encoding == "cp1252" else "strict")
    plain, held = codecs.lookup(encoding).name == "utf-8", b""
    with open_file() as file:
        while True:
            raw = file.read(PIECE)
            try:
                part = raw if plain else decoder.decode(raw, not raw).encode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{origin} must be text in {encoding}, got the byte 0x{error.object[error.start]:02x}; name "
                    "another encoding"
                ) from None
            part, held = (held + part).replace(codecs.BOM_UTF8, b""), b""
            cut = next((end for end in (b"\r", *_PARTS_OF_MARK) if raw and part.endswith(end)), b"")
            part, held = part[: len(part) - len(cut)], cut
            if part:
                yield part.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in part else part
            if not raw:
                return


class _Joined(io.RawIOBase):
    """Bytes, and the pieces that come after them."""

    def __init__(self, start: bytes, parts: Iterator[tuple[bytes, int]]) -> None:
        self.held, self.parts = memoryview(start), parts

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer."""
        while not len(self.held):
            data, _ = next(self.parts, (b"", 0))
            if not data:
                return 0
            self.held = memoryview(data)
        size = min(len(buffer), len(self.held))
        buffer[:size] = self.held[:size]
        self.held = self.held[size:]
        return size
