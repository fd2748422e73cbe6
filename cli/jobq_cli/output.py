"""Records as a table on a terminal, as aligned text in a pipe, or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from jobq_cli.text import json_line, printable

T = TypeVar("T")
SAMPLE = 200  # rows that decide how wide a plain table's columns are; a longer listing streams in those
GAP = "  "
NARROWEST = 8  # characters that a column keeps which gives way to others
LONGEST_TABLE = 1_000  # rows: a terminal's table is laid out as a whole


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column: its cells are made printable here.

    `shrinks`: cut with an ellipsis where a terminal is narrow; `wraps`, too: continued in the next line instead.
    """

    title: str
    cell: Callable[[T], str]
    right: bool = False
    shrinks: bool = False
    wraps: bool = False
    style: Callable[[T], str] = lambda record: ""


def print_json(records: Iterable[Any]) -> None:
    """One object a line."""
    for record in records:
        print(json_line(record))


def print_table(records: Iterable[T], columns: Sequence[Column[T]], *, title: str = "") -> None:
    """A table for people; in a pipe plain text, aligned by the first rows, printed while it is read. None: nothing."""
    rest = iter(records)
    first = list(islice(rest, LONGEST_TABLE if sys.stdout.isatty() else 1))
    if not first:
        return
    if sys.stdout.isatty():
        _print_rich(first, columns, title)
        _print_aligned(rest, columns, heading=False)
        return
    if title:
        print(title)
    _print_aligned(chain(first, rest), columns, heading=True)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Pairs of a line and its style; the style only on a terminal."""
    if not sys.stdout.isatty():
        for line, _ in lines:
            print(printable(line).rstrip())
        return
    from rich.text import Text

    console = _console()
    for line, style in lines:
        console.print(Text(printable(line), style=style), soft_wrap=True)


def _print_aligned(records: Iterable[T], columns: Sequence[Column[T]], *, heading: bool) -> None:
    rows = ([printable(column.cell(record)) for column in columns] for record in records)
    titles = [[column.title for column in columns]] if heading else []
    sample = [*titles, *islice(rows, SAMPLE)]
    widths = [max(map(len, cells)) for cells in zip(*sample, strict=True)]
    for row in chain(sample, rows):
        print(GAP.join(_padded(*each) for each in zip(row, widths, columns, strict=True)).rstrip())


def _padded(cell: str, width: int, column: Column[Any]) -> str:
    return cell.rjust(width) if column.right else cell.ljust(width)


def _print_rich(records: Sequence[T], columns: Sequence[Column[T]], title: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [[Text(printable(each.cell(record)), style=each.style(record)) for each in columns] for record in records]
    console = _console()
    natural = [max(map(len, cells)) for cells in zip(*rows, [each.title for each in columns], strict=True)]
    widths = fitted(natural, [each.shrinks for each in columns], console.width - len(GAP) * (len(columns) - 1))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, len(GAP) - 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        side: Any = "right" if column.right else "left"
        overflow: Any = "fold" if column.wraps else "ellipsis"
        table.add_column(column.title, justify=side, width=width, no_wrap=not column.wraps, overflow=overflow)
    for row in rows:
        table.add_row(*row)
    if title:
        console.print(Text(title, style="bold"))
    console.print(table)


def fitted(natural: Sequence[int], shrinks: Sequence[bool], space: int) -> list[int]:
    """The widths of columns in `space` characters: of those that shrink, always the widest gives way."""
    widths = list(natural)
    for _ in range(max(sum(natural) - space, 0)):
        free = [index for index, may in enumerate(shrinks) if may and widths[index] > NARROWEST]
        if not free:
            break
        widths[max(free, key=lambda index: widths[index])] -= 1
    return widths


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
