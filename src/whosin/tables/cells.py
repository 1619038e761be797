"""Cells of text files as numbers, dates or labels: the whole column decides.

A column is read as numbers if all its cells read so, blanks around them and missing ones aside; dates have the form
2026-01-31, 31.01.2026, 2026/01/31, 31/01/2026, 01/31/2026, the last two also with hyphens, 31-Jan-2026 or 31jan2026,
with or without a time, or 31 January 2026, Jan 31, 2026, and times of day 10:30 or 10:30:15. Where all dates of a
column read with the day or the month first, another column of the file decides, or else they are labels. A unit that
all numbers of a column have ($, €, £, ¥ or the letters of a currency, and any letters behind: kg, °C, km/h) is left
out, % makes hundredths, (1), −1 and 1- are numbers below 0, and blanks or apostrophes may separate thousands. Whole
numbers with zeros in front (postcodes) and those beyond 2⁵³ stay labels. If the caller names no words for missing
cells, those of :data:`WORDS` count as missing among numbers and dates, and a remark says so. If no decimal sign is
named, commas are decimal signs where that makes numbers of a column, and in at least one column of the file they
cannot be thousands; then points separate thousands wherever they can. If commas separate cells too, the first rows
must have such a column, and no number with a point and no comma; or else commas in quotes separate thousands. So they
do where a point is named as the decimal sign, or follows a comma in some column.

What the pieces of a column allow can be joined (:class:`Facts`), so a file that is read in pieces is read like one that
is read at once: first the facts of all pieces, then one form for the column, then its cells in that form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError
from whosin.tables.columns import EXACT, categorical, coded
from whosin.tables.dialect import THOUSANDS, WITH_COMMA, WITH_POINT, WORDS, Dialect, is_number

if TYPE_CHECKING:
    import polars as pl

TEXT, NUMBER, COMMA, MARKED = "text", "number", "number with a comma", "number with commas between thousands"
_DAYS = {
    "%Y-%m-%d": r"\d{4}-\d",
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%Y/%m/%d": r"\d{4}/\d",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d%b%Y": r"\d{1,2}[A-Za-z]{3}\d{4}",
    "%dT%B %Y": r"\d{1,2} [A-Za-z]{3,9} \d{4}",
    "%BT%d, %Y": r"[A-Za-z]{3,9} \d{1,2}, \d{4}",
    "%BT%d %Y": r"[A-Za-z]{3,9} \d{1,2} \d{4}",
}
"""Forms of days, with a T for the first blank, and how a cell in each starts."""
_LIKE_DATES = (
    r"^(\d{4}(-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{1,2}|\d{1,2}(-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)(\d{2}|\d{4})"
    r"|\d{1,2}\.?[- ][^\W\d_]{3,9}\.?[-, ]+(\d{2}|\d{4})|[^\W\d_]{3,9}\.? \d{1,2},? \d{4}"
    r"|[A-Za-z]{3}, \d{1,2} [A-Za-z]{3} \d{4}|\d{1,3}:\d{2}(:\d{2})?)([T ,].*)?$"
)
_TIMES = ("", "T%H:%M:%S%.f", "T%H:%M", "T%I:%M:%S %p", "T%I:%M %p")
_ZONED = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%dT%H:%M:%S%.f UTC")
_CLOCK = ("%H:%M", "%H:%M:%S%.f", "%I:%M %p", "%I:%M:%S %p")
_DATES = (*(day + time for day in _DAYS for time in _TIMES), *_ZONED, *_CLOCK)
_MONEY = "(?:[$€£¥%]|EUR|USD|GBP|CHF|JPY)"
_WORD = r"(?:m[23]|[^\W\d_]{2,10}[23]|[^\W\d_]{1,10}[²³]?)"
_UNIT = rf"(?:{_MONEY}|[°µμ]?{_WORD}(?:/[^\W\d_]{{1,10}}[²³23]?)?)"
"""A unit behind a number: kg, °C, mmHg, m², m2, km/h. E2 is none: it is an exponent."""
_AMOUNT = re.compile(rf"[+(−–-]?{_MONEY}?\s*[+-]?[\d.,]")
"""How a number starts that may have a unit, another minus sign, or blanks and apostrophes between thousands."""
_MINUS = r"^\((.*\d.*)\)$|^[−–](.+)$|^([^+(−–-]*\d)-$"
"""Numbers below 0 as accounts, books and old machines write them."""
_BLANKS = r"['’ \u00a0\u202f]"
_SPACED = rf"^-?\d{{1,3}}({_BLANKS}\d{{3}})+([.,]\d+)?$"
"""Numbers with blanks or apostrophes between thousands."""
_ODD = 3
"""Most words that a column of numbers may have for a remark on them."""
_SPAN = 10
"""Least distance between the ends of such numbers: 0 and 1 are rather labels."""
_CODES = frozenset(float(f"-{'9' * many}") for many in range(1, 6))
"""Numbers that often stand for missing cells."""
_LOOK = 2**15
"""Cells that say whether a column has few distinct ones."""


@dataclass(frozen=True)
class Cells:
    """A column, or a piece of it: text, or numbers that were read as such."""

    cells: pl.Series
    """Text, a categorical if the distinct ones are few, or numbers."""
    values: pl.Series
    """The distinct texts, rising, if they are few, or else all cells: what is to be looked at."""

    @classmethod
    def of(cls, cells: pl.Series, dialect: Dialect) -> Cells:
        """Take cells as they are in the file; a blank that follows every separator is no part of them."""
        import polars as pl

        if cells.dtype != pl.String:
            return cls(cells, cells)
        bare = cells.str.strip_chars_start(" ") if dialect.blanks else cells
        if 2 * bare.head(_LOOK).n_unique() > min(len(bare), _LOOK):
            return cls(bare, bare)
        drawn = categorical(bare)
        listed = drawn.dtype.categories if isinstance(drawn.dtype, pl.Enum) else coded(drawn)[0]
        return cls(drawn, listed)

    @cached_property
    def codes(self) -> NDArray[np.int32] | None:
        """For each cell its place among the distinct ones, -1 where it is missing; None if ``values`` are all."""
        return None if self.values is self.cells else coded(self.cells)[1]

    @property
    def text(self) -> bool:
        """Whether the cells are text."""
        return not self.cells.dtype.is_numeric()

    def spread(self, read: pl.Series) -> pl.Series:
        """Return what was made of the distinct cells for all cells."""
        if read is self.values:
            return self.cells
        if self.codes is None:
            return read
        return read.extend_constant(None, 1).gather(np.where(self.codes < 0, len(read), self.codes))

    def matches(self, pattern: str) -> NDArray[np.int64]:
        """Count the matches of a pattern in each cell of text; one 0 if there are none."""
        found = self.values.str.count_matches(pattern).fill_null(0).to_numpy().astype(np.int64)
        if not found.any():
            return np.zeros(1, dtype=np.int64)
        return found if self.codes is None else np.append(found, 0)[self.codes]


@dataclass(frozen=True)
class Facts:
    """What the cells of a column, or of a piece of it, can be read as."""

    known: bool = False
    """Whether a cell is neither missing nor a word for it."""
    forms: frozenset[str] = frozenset((NUMBER, COMMA, MARKED, *_DATES))
    """The forms in which all those cells read."""
    labels: bool = False
    """Whether some that read as numbers are no quantities: zeros in front, or too long for floats to tell apart."""
    commas: bool = False
    """Whether a cell has a comma."""
    points: bool = False
    """Whether a cell has a point, which may separate thousands."""
    surely: bool = False
    """Whether a comma cannot stand for thousands."""
    thousands: bool = False
    """Whether a comma can only stand for thousands."""
    dated: bool = True
    """Whether all cells look like dates, in whatever way they are written."""
    words: Mapping[str, int] | None = None
    """Rows of each word that would be missing among numbers and dates."""
    units: frozenset[str] = frozenset()
    """Units that numbers have, "" for none: those of a column of numbers all have the same."""
    signs: frozenset[str] = frozenset()
    """What is said of signs in numbers: blanks between thousands, other minus signs."""
    odd: frozenset[str] = frozenset()
    """Cells that are no numbers, a few of them if they are many."""
    codes: frozenset[float] = frozenset()
    """The smallest number of a piece, if it is one that often stands for missing cells."""
    low: float = math.inf
    """The smallest other number."""
    high: float = -math.inf

    def __add__(self, other: Facts) -> Facts:
        """Join the facts of two pieces of a column."""
        ours, theirs = self.words or {}, other.words or {}
        return Facts(
            self.known or other.known,
            self.forms & other.forms,
            self.labels or other.labels,
            self.commas or other.commas,
            self.points or other.points,
            self.surely or other.surely,
            self.thousands or other.thousands,
            self.dated and other.dated,
            {word: ours.get(word, 0) + theirs.get(word, 0) for word in {**ours, **theirs}},
            self.units | other.units,
            self.signs | other.signs,
            self.odd | other.odd,
            self.codes | other.codes,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @classmethod
    def of(cls, column: Cells, dialect: Dialect, *, commas: bool = False) -> Facts:
        """Look at cells of text, or at numbers, which may have had commas."""
        import polars as pl

        cells = column.cells
        if not column.text:
            forms = {COMMA} if commas else {NUMBER, COMMA, MARKED}
            known = cells.null_count() < len(cells)
            if not known:
                return cls()
            read = cls(True, frozenset(forms), commas=commas, surely=commas, dated=False, units=frozenset({""}))
            return read._with_ends(cells)
        bare = _without(column.values.str.strip_chars(), dialect.gaps).drop_nulls()
        words = {}
        if dialect.missing is None and (said := bare.is_in(list(WORDS))).any():
            bare, words = bare.filter(~said), _counted(bare.filter(said) if column.codes is None else cells)
        if bare.is_empty():
            return cls(words=words)
        numbers = bare.cast(pl.Float64, strict=False)
        all_numbers = numbers.null_count() == 0
        forms = {NUMBER} if all_numbers else {shape for shape in _shapes(bare) if _as_dates(bare, shape) is not None}
        units, signs = frozenset({""}), frozenset[str]()
        dated = not all_numbers and bool(re.match(_LIKE_DATES, bare[0])) and bare.str.contains(_LIKE_DATES).all()
        if not forms and _AMOUNT.match(bare[0]):
            units, signs = _units(bare), _signs(bare)
            bare = _bare_numbers(bare)
            numbers = bare.cast(pl.Float64, strict=False)
            all_numbers = numbers.null_count() == 0
            forms = {NUMBER} if all_numbers else set()
        marked = bare.filter(bare.str.contains(",", literal=True)) if not all_numbers else bare.clear()
        commas, surely, points = not marked.is_empty(), False, False
        if dialect.commas and bare.str.contains(WITH_COMMA).all():
            forms |= {COMMA}
            surely = not marked.str.contains(THOUSANDS).all()
            points = bool(bare.str.contains(".", literal=True).any())
        if all_numbers or (commas and bare.str.contains(WITH_POINT).all()):
            forms |= {MARKED}
        thousands = commas and (
            dialect.separator == "," or dialect.decimal == "." or marked.str.contains(r",.*\.").any()
        )
        large = bare.filter(numbers.abs() > EXACT)
        zeros = bare.filter(bare.str.starts_with("0"))
        labels = large.str.contains(r"^[+-]?\d+$").any() or zeros.str.contains(r"^0\d+$").any()
        no_numbers = numbers.null_count() == len(numbers)
        strange = bare.head(_LOOK) if no_numbers else bare.filter(numbers.is_null())
        odd = frozenset(strange.unique().sort().head(_ODD + 1))
        read = cls(
            True, frozenset(forms), bool(labels), commas, points, surely, thousands, dated, words, units, signs, odd
        )
        return read if no_numbers else read._with_ends(numbers)

    def _with_ends(self, numbers: pl.Series) -> Facts:
        """Add the smallest and the largest of some numbers."""
        low, high, codes = float(numbers.min()), float(numbers.max()), frozenset[float]()  # type: ignore[arg-type]
        if low in _CODES:
            codes, least = frozenset({low}), numbers.filter(numbers > low).min()
            low = math.inf if least is None else float(least)  # type: ignore[arg-type]
        return replace(self, codes=codes, low=low, high=high)


@dataclass(frozen=True)
class Forms:
    """The form of each column; made by :meth:`of`."""

    dialect: Dialect
    chosen: Mapping[str, str]
    remarks: tuple[str, ...]
    amounts: Mapping[str, str]
    """The unit of columns of numbers in which it, blanks or apostrophes are to be taken away."""

    @classmethod
    def of(cls, facts: Mapping[str, Facts], dialect: Dialect, raw: Sequence[str] = ()) -> Forms:
        """Choose a form for each column by what all its cells allow; ``raw`` names those that stay text."""
        chosen = {name: TEXT if name in raw else _form(fact, dialect.decimal) for name, fact in facts.items()}
        remarks = []
        if dialect.decimal is None:
            either = [name for name in chosen if name not in raw and _form(facts[name], ",") == COMMA]
            commas = [name for name in either if facts[name].commas]
            if any(facts[name].surely for name in commas):
                chosen |= dict.fromkeys(either, COMMA)
                remarks.append(f"commas are decimal signs in {_listed(commas)}")
                points = [name for name in either if facts[name].points and name not in commas]
                remarks += [f"so points separate thousands in {_listed(points)}"] if points else []
            elif any(fact.thousands and MARKED in fact.forms for fact in facts.values()):
                chosen |= dict.fromkeys((name for name in commas if MARKED in facts[name].forms), MARKED)
            elif commas:
                remarks.append(
                    f"commas in {_listed(commas)} may be decimal signs or separate thousands: labels, "
                    "unless the decimal sign is named"
                )
        chosen |= (ambiguous := _ordered(facts, chosen, remarks))
        marked = [name for name, form in chosen.items() if form == MARKED]
        remarks += [f"commas separate thousands in {_listed(marked)}"] if marked else []
        for name, form in chosen.items():
            said = (facts[name].words or {}) if form != TEXT else {}
            remarks += [
                f"column {name!r}: {word!r} counts as missing in {count} rows"
                for word, count in sorted(said.items(), key=lambda pair: (-pair[1], pair[0]))
            ]
        labels: dict[str, list[str]] = {}
        for name, form in chosen.items():
            for word in (facts[name].words or ()) if form == TEXT and name not in raw else ():
                labels.setdefault(word, []).append(name)
        remarks += [
            f"{word!r} is a label in {_listed(names)}, unless named as missing"
            for word, names in sorted(labels.items())
        ]
        for name, form in chosen.items():
            odd, span = facts[name].odd, facts[name].high - facts[name].low
            if form == TEXT and name not in raw and 0 < len(odd) <= _ODD and span >= _SPAN:
                way = "its line is taken away: names stand there again" if odd == {name} else "that is named as missing"
                remarks.append(f"all cells of {name!r} are numbers but {_listed(sorted(odd))}: labels, unless {way}")
            units = facts[name].units
            if form == TEXT and name not in raw and 1 < len(units) <= _ODD and facts[name].forms & {NUMBER, COMMA}:
                shown = ", ".join(repr(unit) if unit else "none" for unit in sorted(units))
                remarks.append(f"numbers of {name!r} have several units ({shown}): labels, unless written in one")
            if form == TEXT and name not in raw and facts[name].known and facts[name].dated and name not in ambiguous:
                remarks.append(
                    f"cells of {name!r} look like dates, but not all are, or not in one way: labels, unless written as "
                    "2026-01-31"
                )
            if form != TEXT and len(facts[name].codes) == 1 and 0.0 <= facts[name].low < math.inf:
                (code,) = facts[name].codes
                remarks.append(f"{code:.0f} is the only number below 0 in {name!r}: a number, unless named as missing")
        amounts = {}
        for name, form in chosen.items():
            unit = next(iter(facts[name].units), "")
            if form in (NUMBER, COMMA, MARKED) and (unit or facts[name].signs):
                amounts[name] = unit
        for unit in sorted(set(amounts.values()) - {""}):
            what = "makes hundredths" if unit == "%" else "is left out"
            remarks.append(f"{unit!r} {what} in {_listed([name for name in amounts if amounts[name] == unit])}")
        for sign in sorted({sign for name in amounts for sign in facts[name].signs}):
            remarks.append(f"{sign} in {_listed([name for name in amounts if sign in facts[name].signs])}")
        return cls(dialect, chosen, tuple(remarks), amounts)

    def read(self, name: str, column: Cells, place: Callable[[str, int], str]) -> pl.Series:
        """Return cells of a column, or of a piece of it, in its form.

        ``place`` says in errors where a column has its row of some number.
        """
        found = column.spread(self._typed(name, column.values)) if column.text else column.cells
        if column.text:
            _check_finite(found, column.cells, name, place)
        return found

    def _typed(self, name: str, cells: pl.Series) -> pl.Series:
        import polars as pl

        form, bare = self.chosen[name], cells.str.strip_chars()
        if form == TEXT:
            return _without(cells, self.dialect.gaps, bare)
        words = WORDS if self.dialect.missing is None else ()
        known = _without(bare, [*self.dialect.gaps, *words])
        if form in _DATES:
            dates = _as_dates(known, form)
            assert dates is not None
            return dates
        unit = self.amounts.get(name)
        known = known if unit is None else _bare_numbers(known)
        if form == COMMA:
            known = known.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        if form == MARKED:
            known = known.str.replace_all(",", "", literal=True)
        numbers = known.cast(pl.Float64)
        return numbers / 100.0 if unit == "%" else numbers


def read_texts(
    series: Mapping[str, pl.Series], dialect: Dialect, raw: Sequence[str], place: Callable[[str, int], str]
) -> tuple[dict[str, pl.Series], tuple[str, ...]]:
    """Read text in a file that knows other kinds too as a text file has it, and say what was recognised.

    Numbers that are named as missing are missing among its numbers.
    """
    import polars as pl

    dialect = replace(dialect, separator="\t")
    texts = {name: Cells.of(cells, dialect) for name, cells in series.items() if cells.dtype == pl.String}
    forms = Forms.of({name: Facts.of(cells, dialect) for name, cells in texts.items()}, dialect, raw)
    gaps = [float(word) for word in dialect.missing or () if is_number(word)]

    def read(name: str, cells: pl.Series) -> pl.Series:
        if name in texts:
            return forms.read(name, texts[name], place)
        known = _without(cells, gaps) if gaps and cells.dtype.is_numeric() else cells
        _check_finite(known, cells, name, place)
        return known

    return {name: read(name, cells) for name, cells in series.items()}, forms.remarks


def _check_finite(numbers: pl.Series, cells: pl.Series, name: str, place: Callable[[str, int], str]) -> None:
    if numbers.dtype.is_float() and (endless := numbers.is_infinite()).any():
        row = int(endless.arg_max() or 0)
        raise InputError(
            f"{place(name, row)} must be a finite number, got {str(cells[row])!r} ({int(endless.sum())} such cells); "
            f"missing={str(cells[row])!r} counts such cells as missing"
        )


def _form(fact: Facts, decimal: str | None) -> str:
    """Return the form that all cells of a column allow, with this decimal sign."""
    number = COMMA if decimal == "," else MARKED if fact.commas else NUMBER
    if not fact.known:
        return TEXT
    if number in fact.forms and len(fact.units) == 1 and (number != MARKED or fact.thousands):
        return TEXT if fact.labels else number
    return next((shape for shape in _DATES if shape in fact.forms), TEXT)


def _without(cells: pl.Series, words: Sequence[str | float], bare: pl.Series | None = None) -> pl.Series:
    """Return cells with nothing where they, or what is ``bare`` of them, are one of some words."""
    import polars as pl

    gone = (cells if bare is None else bare).is_in(list(words))
    return pl.select(pl.when(~gone).then(cells)).to_series() if gone.any() else cells


def _counted(cells: pl.Series) -> dict[str, int]:
    """Count the words that may stand for missing cells."""
    import polars as pl

    bare = cells.cast(pl.String).str.strip_chars()
    return dict(bare.filter(bare.is_in(list(WORDS))).value_counts().iter_rows())


def _shapes(known: pl.Series) -> Sequence[str]:
    """Return the forms of dates that the first cell may have."""
    if len(known) and re.match(r"\d{1,2}:\d\d", known[0]):
        return _CLOCK
    days = [day for day, start in _DAYS.items() if len(known) and re.match(start, known[0])]
    return [shape for shape in _DATES if shape.startswith(tuple(days))] if days else ()


def _units(known: pl.Series) -> frozenset[str]:
    """Return the different units before and behind numbers, "" where there is none."""
    before = known.str.extract(rf"^[+(−–-]?({_MONEY})").fill_null("")
    behind = known.str.extract(rf"[\d.,]\s*({_UNIT})[)-]?$").fill_null("")
    return frozenset((before + behind).unique())


def _signs(known: pl.Series) -> frozenset[str]:
    """Say which signs numbers have that are taken away or replaced."""
    said = {_SPACED: "blanks or apostrophes separate thousands", _MINUS: "(1), −1 and 1- are numbers below 0"}
    bare = _without_units(known)
    return frozenset(what for pattern, what in said.items() if bare.str.contains(pattern).any())


def _without_units(known: pl.Series) -> pl.Series:
    return known.str.replace(rf"^([+(−–-]?){_MONEY}\s*", "$1").str.replace(rf"([\d.,])\s*{_UNIT}([)-]?)$", "$1$2")


def _bare_numbers(known: pl.Series) -> pl.Series:
    """Take units away, and blanks and apostrophes between thousands, and write one minus sign."""
    import polars as pl

    bare = _without_units(known).str.replace(_MINUS, "-$1$2$3")
    spaced = bare.str.contains(_SPACED)
    if not spaced.any():
        return bare
    return pl.select(pl.when(spaced).then(bare.str.replace_all(_BLANKS, "")).otherwise(bare)).to_series()


def _ordered(facts: Mapping[str, Facts], chosen: Mapping[str, str], remarks: list[str]) -> dict[str, str]:
    """Return the form of dates that read with the day or the month first: that of other columns, or else labels."""
    swapped = {name: f"%m{form[2]}%d{form[5:]}" for name, form in chosen.items() if form.startswith(("%d/%m", "%d-%m"))}
    either = {name: form for name, form in swapped.items() if form in facts[name].forms}
    sure = {form[:2] for name, form in chosen.items() if name in swapped.keys() - either or form[:3] in ("%m/", "%m-")}
    if either and sure == {"%m"}:
        return either
    if not either or sure == {"%d"}:
        return {}
    remarks.append(
        f"dates in {_listed(list(either))} may start with the day or the month: labels, unless written as 2026-01-31"
    )
    return dict.fromkeys(either, TEXT)


def _as_dates(known: pl.Series, shape: str) -> pl.Series | None:
    if shape in _CLOCK:
        times = known.str.to_time(shape, strict=False)
        return times if times.null_count() == known.null_count() else None
    iso = known.str.replace(" ", "T", literal=True)
    dates = iso.str.to_datetime(shape, time_unit="us", time_zone="UTC" if shape in _ZONED else None, strict=False)
    return dates if dates.null_count() == known.null_count() else None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more columns"
