"""Inserts of new jobs, one or many, with a unique key or without, in whatever transaction the connection is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.exc import StatementError

from jobq.errors import UniqueKeyError
from jobq.notify import channel_for
from jobq.statements import enqueue as one
from jobq.statements import enqueue_rows as many
from jobq.statements import enqueue_select as by_select

TRIES = 10  # of a hot key 23 % of calls meet a holder that comes or goes during the statement
MOST_ROWS = 5_000  # a statement
MOST_CHARACTERS = 16 * 2**20  # of args a statement; PostgreSQL takes 1 GB a bind

Numbered: TypeAlias = "tuple[int, NewJob]"


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to insert. `binds`: those of statements/enqueue.py that differ between the jobs of one call.

    `is_later`: surely not due at once, so that nobody need be told.
    """

    binds: dict[str, Any]
    is_later: bool

    @property
    def is_keyed(self) -> bool:
        return self.binds["unique_key"] is not None or self.binds["unique_names"] is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a job: inserted, or not because another (its id) holds the key."""

    id: int
    created: bool
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """What became of the rows of a SELECT: how many jobs; how many rows by what was wrong; a key that was held."""

    inserted: int
    unfit: dict[int, int]
    missed: str | None


def insert(connection: sa.Connection, job: NewJob, common: Mapping[str, Any]) -> Answer:
    """Insert one job, if nobody holds its key. `common`: kind and callsite. Raises: UniqueKeyError, after TRIES."""
    binds = {**common, **job.binds, "channel": _channel(connection, [job])}
    if not job.is_keyed:
        del binds["unique_key"], binds["unique_names"]  # columns of an INSERT, SQLAlchemy would fill them
        return Answer(_execute(connection, one.enqueue(), binds)[0].id, True)
    for _ in range(TRIES):
        for row in _execute(connection, one.enqueue_keyed(), binds):
            return Answer(row.id, row.created, row.unique_key)
    raise _never_still(job.binds["unique_key"], common["kind"])


def insert_many(connection: sa.Connection, jobs: Sequence[NewJob], common: Mapping[str, Any]) -> list[Answer]:
    """Insert jobs of one kind; answers in their order. Ids ascend in that order where there are no keys.

    Jobs with keys go in last, in the order of the keys: two such calls cannot wait for each other.
    """
    numbered = list(enumerate(jobs))
    answers: dict[int, Answer] = {}
    for part in _parts(each for each in numbered if not each[1].is_keyed):
        answers |= _insert_part(connection, part, common)
    keyed = [each for each in numbered if each[1].is_keyed]
    parts = list(_parts(keyed))
    if len(parts) > 1:
        parts = list(_parts(_by_key(connection, parts, common)))
    for part in parts:
        answers |= _insert_keyed_part(connection, part, common)
    return list(_first_created(answers[n] for n, _ in numbered))


def insert_select(
    connection: sa.Connection, statement: sa.CompoundSelect[Any], common: Mapping[str, Any], *, is_later: bool
) -> Selected:
    """Run one of statements/enqueue_select.py. `common`: its binds but for the channel."""
    channel = None if is_later else channel_for(connection, [common["queue"]])
    rows = _execute(connection, statement, {**common, "channel": channel})
    counts = {row.problem: row.rows for row in rows if row.rows is not None}
    missed = next((row.key for row in rows if row.key is not None), None)
    return Selected(counts.pop(None), counts, missed)


def holder_of(connection: sa.Connection, key: str) -> int | None:
    """The open job that holds a key."""
    row = connection.execute(by_select.holder(), {"key": key}).one_or_none()
    return None if row is None else row.id


def _insert_part(connection: sa.Connection, part: list[Numbered], common: Mapping[str, Any]) -> dict[int, Answer]:
    binds = {**common, **_arrays(part, many.FIELDS), "channel": _channel(connection, [job for _, job in part])}
    ids = sorted(row.id for row in _execute(connection, many.enqueue_rows(), binds) if row.id is not None)
    return {n: Answer(id, True) for (n, _), id in zip(part, ids, strict=True)}  # noqa: A001


def _insert_keyed_part(connection: sa.Connection, part: list[Numbered], common: Mapping[str, Any]) -> dict[int, Answer]:
    answers: dict[int, Answer] = {}
    for _ in range(TRIES):
        left = [each for each in part if each[0] not in answers]
        if not left:
            return answers
        channel = _channel(connection, [job for _, job in left])
        binds = {**common, **_arrays(left, many.FIELDS | many.KEY_FIELDS), "channel": channel}
        for row in _execute(connection, many.enqueue_keyed_rows(), binds):
            if row.id is not None:
                answers[left[row.ord - 1][0]] = Answer(row.id, row.created, row.unique_key)
    if len(answers) < len(part):
        raise _never_still(None, common["kind"])
    return answers


def _by_key(connection: sa.Connection, parts: list[list[Numbered]], common: Mapping[str, Any]) -> list[Numbered]:
    """The jobs in the order of their keys, which are derived first: each statement alone would order only its own."""
    keyed = []
    for part in parts:
        binds = {"kind": common["kind"], **_arrays(part, many.KEY_FIELDS)}
        for row in _execute(connection, many.keys_of_rows(), binds):
            n, job = part[row.ord - 1]
            given = {**job.binds, "unique_key": row.unique_key, "unique_names": None}
            keyed.append((row.unique_key.encode(), n, NewJob(given, job.is_later)))
    return [(n, job) for _, n, job in sorted(keyed, key=lambda each: each[:2])]


def _first_created(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Of several rows with one key only the first has created the job."""
    seen: set[int] = set()
    for answer in answers:
        yield Answer(answer.id, answer.created and answer.id not in seen, answer.key)
        seen.add(answer.id)


def _parts(jobs: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    part: list[Numbered] = []
    size = 0
    for n, job in jobs:
        length = len(job.binds["args"])
        if part and (len(part) == MOST_ROWS or size + length > MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append((n, job))
        size += length
    if part:
        yield part


def _arrays(part: list[Numbered], fields: Iterable[str]) -> dict[str, list[Any]]:
    return {field: [job.binds[field] for _, job in part] for field in fields}


def _channel(connection: sa.Connection, jobs: Iterable[NewJob]) -> str | None:
    return channel_for(connection, {job.binds["queue"] for job in jobs if not job.is_later})


def _execute(connection: sa.Connection, statement: Any, binds: dict[str, Any]) -> Sequence[sa.Row[Any]]:
    try:
        return connection.execute(statement, binds).all()
    except StatementError as error:
        error.hide_parameters = True  # args may be secrets, whatever the caller's engine shows
        raise


def _never_still(key: str | None, kind: str) -> UniqueKeyError:
    what = f"unique key {key!r}" if key else f"a unique key of {kind}"
    problem = f"{what} was taken and freed again during each of {TRIES} tries; enqueue once more"
    return UniqueKeyError(problem, key=key or "", holder=None)
