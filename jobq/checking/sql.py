"""Finding jobs that SQL text inserts: into the table, or through the function `jobq.enqueue`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobq.checking.found import Arguments, Found, What

TOKEN = re.compile(
    r"""
    (?P<skip> \s+ | --[^\n]* | /\*.*?\*/ | \$\w*\$ )   # the body of a function is looked into
    | (?P<text> [eE]?'(?:[^']|'')*' )
    | (?P<quoted> "(?:[^"]|"")*" )
    | (?P<word> [^\W\d]\w* )
    | (?P<mark> :: | => | := | . )
    """,
    re.VERBOSE | re.DOTALL,
)
HINT = re.compile(r"\bjobq\W*\.\W*(jobs|enqueue)\b", re.IGNORECASE)
PARAMETERS = ("kind", "args", "queue", "run_at", "priority", "unique_key")
GAP = "\ufffc"  # stands where a value goes into a text that is put together
OPENING, CLOSING = frozenset("(["), frozenset(")]")


@dataclass(frozen=True, slots=True)
class Token:
    """A word in lower case, the value of a text, or a mark."""

    form: str
    value: str
    line: int


def find_sql(text: str, path: str) -> list[Found]:
    """The jobs that SQL text inserts, each with its line in the text, from 1."""
    return list(_found_in(_tokens(text), path)) if HINT.search(text) else []


def _found_in(tokens: Sequence[Token], path: str) -> Iterator[Found]:
    for n, token in enumerate(tokens):
        words = [each.value for each in tokens[n : n + 3]]
        if words == ["jobq", ".", "jobs"] and _before(tokens, n, "insert", "into"):
            for values in _inserted(tokens[n + 3 :]):
                yield _found(path, token.line, values)
        elif words == ["jobq", ".", "enqueue"] and not _before(tokens, n, "function"):
            call = tokens[n + 3 :]
            if call and call[0].value == "(":
                yield _found(path, token.line, _given(_parts(call)))


def _found(path: str, line: int, values: dict[str, str | None]) -> Found:
    return Found(path, line, What.SQL, kind=values.get("kind"), args=_args(values), as_json=True)


def _args(values: dict[str, str | None]) -> Arguments | None:
    """The args where they are written as JSON, or are left out."""
    text = values.get("args", "{}")
    try:
        args = None if text is None else json.loads(text)
    except ValueError:
        return None
    return Arguments((), args) if isinstance(args, dict) else None


def _before(tokens: Sequence[Token], n: int, *words: str) -> bool:
    return [each.value for each in tokens[max(n - len(words), 0) : n]] == list(words)


def _inserted(tokens: Sequence[Token]) -> Iterator[dict[str, str | None]]:
    """The values of the columns in each row of `(columns) VALUES (...), (...)` or `(columns) SELECT ...`."""
    if not tokens or tokens[0].value != "(":
        yield {}
        return
    columns = [part[0].value for part in _parts(tokens) if part]
    for row in list(_rows(tokens[_end(tokens) :])) or [[]]:
        yield dict(zip(columns, map(_literal, row), strict=False))


def _rows(tokens: Sequence[Token]) -> Iterator[list[Sequence[Token]]]:
    if tokens and tokens[0].value == "select":
        yield _split(tokens[1:], until=frozenset({"from", ";", "where", "union"}))
    elif tokens and tokens[0].value == "values":
        rest = tokens[1:]
        while rest and rest[0].value == "(":
            yield _parts(rest)
            rest = rest[_end(rest) :]
            rest = rest[1:] if rest and rest[0].value == "," else []


def _given(parts: list[Sequence[Token]]) -> dict[str, str | None]:
    """The arguments of the function, by position or by name."""
    given: dict[str, str | None] = {}
    for parameter, part in zip(PARAMETERS, parts, strict=False):
        if len(part) > 2 and part[1].value in ("=>", ":="):
            given[part[0].value] = _literal(part[2:])
        elif part:
            given[parameter] = _literal(part)
    return given


def _literal(part: Sequence[Token]) -> str | None:
    """The value of a text that stands for itself, maybe with a cast behind it."""
    if not part or part[0].form != "text" or GAP in part[0].value:
        return None
    return part[0].value if len(part) == 1 or part[1].value == "::" else None


def _parts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """What the commas of a bracket separate; `tokens` begins with the bracket."""
    return _split(tokens[1 : _end(tokens) - 1])


def _split(tokens: Sequence[Token], until: frozenset[str] = frozenset()) -> list[Sequence[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.value in OPENING and token.form == "mark") - (token.value in CLOSING and token.form == "mark")
        if depth < 0 or (depth == 0 and token.form != "text" and token.value in until):
            break
        if depth == 0 and token.form == "mark" and token.value == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _end(tokens: Sequence[Token]) -> int:
    """Where the bracket that `tokens` begins with is closed, plus one."""
    depth = 0
    for n, token in enumerate(tokens):
        if token.form == "mark":
            depth += (token.value in OPENING) - (token.value in CLOSING)
        if depth == 0:
            return n + 1
    return len(tokens)


def _tokens(text: str) -> list[Token]:
    found, line = [], 1
    for match in TOKEN.finditer(text):
        form: Any = match.lastgroup
        if form != "skip":
            found.append(Token("word" if form == "quoted" else form, _value(form, match[0]), line))
        line += match[0].count("\n")
    return found


def _value(form: str, text: str) -> str:
    if form == "text":
        return text[text.index("'") + 1 : -1].replace("''", "'")
    return text[1:-1] if form == "quoted" else text.lower()
