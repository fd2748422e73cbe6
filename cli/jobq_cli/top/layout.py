"""Tables as lines of a given width, for a screen that is drawn as a whole. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from jobq_cli.output import GAP, Column, fitted
from jobq_cli.text import printable

T = TypeVar("T")
Line: TypeAlias = list[tuple[str, str]]  # pieces of text, each with its style
UNLIMITED = 10_000
CUT = "\u2026"


def table(records: Sequence[T], columns: Sequence[Column[T]], width: int) -> list[Line]:
    """A line of titles and one for each record; columns that shrink give way where it is narrow."""
    rows = [[printable(column.cell(record)) for column in columns] for record in records]
    titles = [column.title for column in columns]
    natural = [max(map(cells_of, cells)) for cells in zip(titles, *rows, strict=True)]
    widths = fitted(natural, [column.shrinks for column in columns], width - len(GAP) * (len(columns) - 1))
    lines = [_line(titles, ["bold"] * len(columns), columns, widths)]
    for record, row in zip(records, rows, strict=True):
        lines.append(_line(row, [column.style(record) for column in columns], columns, widths))
    return lines


def cropped(line: Line, width: int) -> Line:
    """What of a line fits."""
    kept: Line = []
    for text, style in line:
        if width <= 0:
            break
        kept.append((text if cells_of(text) <= width else cut(text, width), style))
        width -= cells_of(text)
    return kept


def cut(text: str, width: int) -> str:
    """The beginning of a text that is too long, with an ellipsis at its end."""
    if cells_of(text) <= width:
        return text
    while text and cells_of(text) > width - 1:
        text = text[:-1]
    return f"{text}{CUT}"


def cells_of(text: str) -> int:
    """How much of a terminal's line a text takes: Chinese twice as much, an accent of its own nothing."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def shares(space: int, wanted: Sequence[int]) -> list[int]:
    """How many lines each part gets of those there are: as many as it wants, or as the others."""
    given = [0] * len(wanted)
    while space > 0 and given != list(wanted):
        for index, wants in enumerate(wanted):
            if given[index] < wants and space > 0:
                given[index] += 1
                space -= 1
    return given


def _line(cells: Sequence[str], styles: Sequence[str], columns: Sequence[Column[T]], widths: Sequence[int]) -> Line:
    line: Line = []
    for text, style, column, width in zip(cells, styles, columns, widths, strict=True):
        shown = cut(text, width)
        room = " " * (width - cells_of(shown))
        line += [(f"{room}{shown}" if column.right else f"{shown}{room}", style), (GAP, "")]
    return line[:-1]


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
