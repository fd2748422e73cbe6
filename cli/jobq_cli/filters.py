"""The filters that list, retry and cancel share."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Annotated, Any, TypeAlias

import sqlalchemy as sa
import typer

from jobq.masking import MASK, is_secret
from jobq.model import State
from jobq.statements.choose import Predicate
from jobq_cli.choose import checked_text, ended_or_enqueued, has_arg, has_error, in_state, parsed_arg
from jobq_cli.durations import parse_duration
from jobq_cli.options import Kind, Queue
from jobq_cli.text import span


def _some_args(values: list[str] | None) -> list[str]:
    for value in values or []:
        parsed_arg(value)
    return values or []


def _a_text(value: str | None) -> str | None:
    return None if value is None else checked_text(value)


def _age(name: str, words: str) -> Any:
    return typer.Option(name, metavar="SPAN", parser=parse_duration, help=f"Only jobs that {words}.")


Older: TypeAlias = Annotated[timedelta | None, _age("--older", "ended, or else were enqueued, longer ago (1h30m, 2d)")]
Newer: TypeAlias = Annotated[timedelta | None, _age("--newer", "ended, or else were enqueued, within this time")]
Args: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--arg", metavar="PATH=VALUE", callback=_some_args,
        help="Only jobs with this argument, such as tenant.id=7; the value is JSON, or else text.",
    ),
]  # fmt: skip
Error: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--error", metavar="TEXT", callback=_a_text, help="Only jobs with this in their last error or their outcome."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What was typed, checked."""

    queue: Queue = None
    kind: Kind = None
    older: Older = None
    newer: Newer = None
    arg: Args = None
    error: Error = None

    def __bool__(self) -> bool:
        """Whether there is one."""
        return any(getattr(self, each.name) not in (None, []) for each in fields(self))

    def where(self, table: sa.Table, states: Collection[State]) -> list[Predicate]:
        """The predicates; what is not restricted gives none."""
        now = sa.func.now()
        return [
            *in_state(table, states),
            *([table.c.queue == self.queue] if self.queue is not None else []),
            *([table.c.kind == self.kind] if self.kind is not None else []),
            *([ended_or_enqueued(table) < now - self.older] if self.older is not None else []),
            *([ended_or_enqueued(table) >= now - self.newer] if self.newer is not None else []),
            *[has_arg(table, each) for each in self.arg or []],
            *([has_error(table, self.error)] if self.error is not None else []),
        ]

    def described(self, states: Collection[State], *, secrets: Collection[str] = ()) -> str:
        """As one would say it: `state dead, queue email, older 2h`; without the values of the arguments `secrets`."""
        return ", ".join([f"state {' or '.join(sorted(states))}", *self._each(secrets)])

    def _each(self, secrets: Collection[str]) -> Iterator[str]:
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                yield f"{name} {span(one) if isinstance(one, timedelta) else _shown(name, one, secrets)}"


def _shown(name: str, value: str, secrets: Collection[str]) -> str:
    """What stands under a secret key is in no log."""
    path = value.partition("=")[0]
    steps = path.split(".")
    return f"{path}={MASK}" if name == "arg" and (steps[0] in secrets or any(map(is_secret, steps))) else value
