"""What is written in the documents of the project: their blocks of code, tables, code spans, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "DESIGN.md", "CHANGELOG.md"]
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a document; `language` is empty for drawings."""

    document: str
    heading: str
    language: str
    text: str
    line: int

    @property
    def id(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def path(self) -> str | None:
        """The file that the block says it is, in a comment on its first line."""
        found = re.match(r"# (\S+\.(?:py|toml|ini))\n", self.text)
        return found[1] if found else None

    @property
    def is_a_readers_test(self) -> bool:
        """A file of the reader's own tests, which pytest runs."""
        return self.path is not None and self.path.startswith("tests/")


@dataclass(frozen=True)
class Row:
    """A row of a table; `cells` as they are written."""

    document: str
    heading: str
    cells: tuple[str, ...]

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", f"{self.heading} {self.cells[0]}")[:80].strip("-")


@cache
def text_of(document: str) -> str:
    return (ROOT / document).read_text()


@cache
def blocks(document: str) -> tuple[Block, ...]:
    text = text_of(document)
    return tuple(
        Block(document, _heading_before(text, found.start()), found["language"], found["text"], _line(text, found))
        for found in _FENCE.finditer(text)
    )


def snippets(document: str) -> list[Block]:
    """The blocks of Python that are executed one after the other."""
    return [block for block in blocks(document) if block.language == "python" and not block.is_a_readers_test]


@cache
def prose(document: str) -> str:
    """The document without its blocks of code."""
    return _FENCE.sub("", text_of(document))


def spans(text: str) -> list[str]:
    """The code in running text; in a table a bar is written with a backslash."""
    return [" ".join(span.split()).replace("\\|", "|") for span in _SPAN.findall(text)]


def rows(document: str, heading: str) -> list[Row]:
    """The rows of all tables below a heading (up to the next one), without their heads."""
    lines = section(document, heading).splitlines()
    rules = [n for n, line in enumerate(lines) if re.fullmatch(r"\|(?:-+\|)+", line)]
    heads = {n for rule in rules for n in (rule - 1, rule)}
    bodies = [line for n, line in enumerate(lines) if line.startswith("|") and n not in heads]
    return [Row(document, heading, _cells(line)) for line in bodies]


def section(document: str, heading: str) -> str:
    """What stands below a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", prose(document), re.MULTILINE | re.DOTALL)
    assert found, f"{document} has no section {heading!r}"
    return found[1]


def links(document: str) -> list[str]:
    return [target for target in _LINK.findall(prose(document)) if "://" not in target]


@cache
def anchors(document: str) -> frozenset[str]:
    """The anchors that a reader of the rendered document can jump to."""
    return frozenset(_anchor(heading) for heading in _HEADING.findall(prose(document)))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _heading_before(text: str, position: int) -> str:
    found = ["", *_HEADING.findall(_FENCE.sub(_blank, text)[:position])]
    return str(found[-1])


def _blank(found: re.Match[str]) -> str:
    """A block's place without its text: a comment in it is no heading."""
    return re.sub(r"[^\n]", " ", found[0])


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def commands(text: str) -> Iterator[str]:
    """The command lines of a shell block, without comments and what is joined by &&."""
    for line in text.splitlines():
        for part in line.partition("  #")[0].split("&&"):
            if part.strip():
                yield part.strip()
