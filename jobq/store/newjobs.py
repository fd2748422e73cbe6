"""New jobs on their way into the database: what the statements take, in parts that one statement can take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from jobq.notify import channel_for

MOST_ROWS = 5_000  # a statement
MOST_CHARACTERS = 16 * 2**20  # of args a statement; PostgreSQL takes 1 GB a bind

Change: TypeAlias = Literal["replace", "reschedule"]
Numbered: TypeAlias = "tuple[int, NewJob]"


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """How jobs are to be inserted: mostly, all of one call in the same manner. `binds`: as statements/enqueue.py has
    them, but for args.

    `is_later`: surely not due at once, so that nobody need be told. `change`: what to do with a waiting job that holds
    the key, None for nothing; `must_be_new`: there may be none.
    """

    binds: dict[str, Any]
    is_later: bool
    change: Change | None = None
    must_be_new: bool = False

    @property
    def is_keyed(self) -> bool:
        return self.binds["unique_key"] is not None or self.binds["unique_names"] is not None

    def but(self, **binds: Any) -> Manner:
        """The same with some binds changed."""
        return replace(self, binds={**self.binds, **binds})


class NewJob(NamedTuple):
    """A job to insert: its args as JSON text, and how."""

    args: str
    manner: Manner

    @property
    def binds(self) -> dict[str, Any]:
        return {**self.manner.binds, "args": self.args}


class Block(NamedTuple):
    """Jobs that differ in nothing but their args: the JSON texts of these, with commas between, and how many."""

    args: str
    number: int


class Answer(NamedTuple):
    """What became of a job: inserted, or not because another (its id) holds the key, which then was changed or not."""

    id: int
    created: bool
    key: str | None = None
    changed: bool = False


def parts_of(jobs: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Each as many as one statement takes."""
    part: list[Numbered] = []
    size = 0
    for n, job in jobs:
        length = len(job.args)
        if part and (len(part) == MOST_ROWS or size + length > MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append((n, job))
        size += length
    if part:
        yield part


def joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """As large as one statement takes them."""
    part: list[str] = []
    number = size = 0
    for block in blocks:
        if part and (number + block.number > MOST_ROWS or size + len(block.args) > MOST_CHARACTERS):
            yield Block(",".join(part), number)
            part, number, size = [], 0, 0
        part.append(block.args)
        number += block.number
        size += len(block.args)
    yield Block(",".join(part), number)


def arrays(part: list[Numbered], fields: Iterable[str]) -> dict[str, list[Any]]:
    """A bind for each field: an array with an entry for each job."""
    binds = [job.binds for _, job in part]
    return {field: [each[field] for each in binds] for field in fields}


def channel_of_due(connection: sa.Connection, jobs: Iterable[NewJob]) -> str | None:
    """Where to tell of those that may be due at once; None: tell nobody."""
    manners = {job.manner for job in jobs}
    return channel_for(connection, {manner.binds["queue"] for manner in manners if not manner.is_later})


def execute(connection: sa.Connection, statement: Any, binds: dict[str, Any]) -> Sequence[sa.Row[Any]]:
    """The rows; args stand in no error."""
    try:
        return connection.execute(statement, binds).all()
    except StatementError as error:
        error.hide_parameters = True  # args may be secrets, whatever the caller's engine shows
        raise
