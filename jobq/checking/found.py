"""The values: what was found in a source, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

LIBRARY = "jobq"


class Unknown:
    """The value of an expression that only a run would tell."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class What(StrEnum):
    """What stands at a place. HANDLER and ALIAS say what names mean; the others are judged."""

    ENQUEUE = "enqueue"  # a call of enqueue and its kin, or a row given to enqueue_many
    ARGS = "args"  # something.args(...), which may be a handler's
    KIND = "kind"  # jobq.kind("...")
    SCHEDULE = "schedule"
    SQL = "sql"  # an INSERT into the table, or a call of the SQL function
    HANDLER = "handler"  # @app.handler("...")
    ALIAS = "alias"  # a name of a module that is another name


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call as far as they are literals, else UNKNOWN. `is_whole`: there is no * and no **."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """Something that names a kind: written out, or through dotted names that a handler may have.

    `args` None: there are none to look at here. `as_json`: they are JSON already, not values of the handler's types.
    `function`: the names of what is called, where it is of another module, which may hand on jobq's own.
    """

    path: str
    line: int
    what: What
    names: tuple[str, ...] = ()
    kind: str | None = None
    args: Arguments | None = None
    as_json: bool = False
    function: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """What is wrong, and where."""

    path: str
    line: int
    kind: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}" if self.line else f"{self.path}: {self.problem}"
