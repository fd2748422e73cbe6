"""Lines on a terminal: all of it, in place, and as it was before when it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jobq_cli.top.frame import BLOCKS, Size
from jobq_cli.top.layout import Line

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a screen of its own, without a cursor
HOME, END_OF_LINE, BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
COLOURLESS = frozenset({"bold", "dim"})


def is_live() -> bool:
    """Whether there is a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def size() -> Size:
    """Of the terminal, as it is now; but for its last column, where to clear the rest of a line clears a character."""
    width, height = os.get_terminal_size(sys.stdout.fileno())
    return Size((width or 80) - 1, height or 24, blocks())


def blocks() -> str:
    """What bars are drawn with: what the stream can write."""
    try:
        BLOCKS[0].encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return BLOCKS[1]
    return BLOCKS[0]


@contextmanager
def screen() -> Iterator[None]:
    """The terminal's other screen; whatever happens, it is left again."""
    sys.stdout.write(ENTER)
    try:
        yield
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()


def draw(lines: Sequence[Line]) -> None:
    """Over what is there: to clear it first would flicker."""
    coloured = not os.environ.get("NO_COLOR")
    text = f"{END_OF_LINE}\n".join(_drawn(line, coloured=coloured) for line in lines)
    sys.stdout.write(_in_place(f"{HOME}{text}{END_OF_LINE}{BELOW}"))
    sys.stdout.flush()


def plain(lines: Sequence[Line]) -> str:
    """Without any styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def _in_place(text: str) -> str:
    """With a ? for what the stream cannot write: escaped, as in a pipe, it would be wider than its column."""
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "replace").decode(encoding)


def _drawn(line: Line, *, coloured: bool) -> str:
    return "".join(_styled(text, style if coloured or style in COLOURLESS else "") for text, style in line)


def _styled(text: str, style: str) -> str:
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if style else text
