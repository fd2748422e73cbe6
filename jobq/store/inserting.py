"""Inserts of new jobs, one or many, with a unique key or without, in whatever transaction the connection is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from jobq.errors import UniqueKeyError
from jobq.notify import channel_for
from jobq.statements import enqueue as one
from jobq.statements import enqueue_rows as many
from jobq.statements import enqueue_select as by_select
from jobq.store.changing import settle
from jobq.store.newjobs import (
    Answer,
    Block,
    Manner,
    NewJob,
    Numbered,
    arrays,
    channel_of_due,
    execute,
    joined,
    parts_of,
)

TRIES = 10  # of a hot key 23 % of calls meet a holder that comes or goes during the statement


@dataclass(frozen=True, slots=True)
class Selected:
    """What became of the rows of a SELECT: how many jobs; how many rows by what was wrong; a key that was held."""

    inserted: int
    unfit: dict[int, int]
    missed: str | None


def insert(connection: sa.Connection, job: NewJob, common: Mapping[str, Any]) -> Answer:
    """Insert one job, or do as it says with who holds its key. `common`: kind and callsite.

    Raises: UniqueKeyError, after TRIES, or when a job of another kind is to be changed.
    """
    binds = {**common, **job.binds, "channel": channel_of_due(connection, [job])}
    if not job.manner.is_keyed:
        binds = _unkeyed(binds)
        return Answer(execute(connection, one.enqueue(), binds)[0].id, True)
    for _ in range(TRIES):
        for row in execute(connection, one.enqueue_keyed(), binds):
            answers = {0: Answer(row.id, row.created, row.unique_key)}
            for answer in settle(connection, [(0, job)], answers, common).values():
                return answer
    raise _never_still(job.manner.binds["unique_key"], common["kind"])


def insert_alike(
    connection: sa.Connection, blocks: Iterable[Block], manner: Manner, common: Mapping[str, Any]
) -> list[int]:
    """Insert jobs of one kind that have no keys and differ in their args alone; the ids, in their order."""
    ids: list[int] = []
    for block in joined(blocks):
        channel = None if manner.is_later else channel_for(connection, [manner.binds["queue"]])
        binds = {**common, **_unkeyed(manner.binds), "args": f"[{block.args}]", "channel": channel}
        ids += [row[0] for row in execute(connection, many.enqueue_alike(), binds)]
    return sorted(ids)


def insert_many(connection: sa.Connection, jobs: Sequence[NewJob], common: Mapping[str, Any]) -> list[Answer]:
    """Insert jobs of one kind; answers in their order. Ids ascend in that order where there are no keys.

    Jobs with keys go in last, in the order of the keys: two such calls cannot wait for each other.
    """
    numbered = list(enumerate(jobs))
    answers: dict[int, Answer] = {}
    for part in parts_of(each for each in numbered if not each[1].manner.is_keyed):
        answers |= _insert_part(connection, part, common)
    answers |= _insert_keyed(connection, [each for each in numbered if each[1].manner.is_keyed], common)
    return [answers[n] for n, _ in numbered]


def insert_select(
    connection: sa.Connection, statement: sa.Executable, common: Mapping[str, Any], *, is_later: bool
) -> Selected:
    """Run one of statements/enqueue_select.py. `common`: its binds but for the channel."""
    channel = None if is_later else channel_for(connection, [common["queue"]])
    rows = execute(connection, statement, {**common, "channel": channel})
    counts = {row.problem: row.rows for row in rows if row.rows is not None}
    missed = next((row.key for row in rows if row.key is not None), None)
    return Selected(counts.pop(None), counts, missed)


def holder_of(connection: sa.Connection, key: str) -> int | None:
    """The open job that holds a key."""
    row = connection.execute(by_select.holder(), {"key": key}).one_or_none()
    return None if row is None else row.id


def _insert_part(connection: sa.Connection, part: list[Numbered], common: Mapping[str, Any]) -> dict[int, Answer]:
    binds = {**common, "channel": channel_of_due(connection, [job for _, job in part])}
    rows = execute(connection, many.enqueue_rows(), {**binds, **arrays(part, many.FIELDS)})
    ids = sorted([row[0] for row in rows if row[0] is not None])
    return {n: Answer(id, True) for (n, _), id in zip(part, ids, strict=True)}  # noqa: A001


def _insert_keyed(connection: sa.Connection, jobs: list[Numbered], common: Mapping[str, Any]) -> dict[int, Answer]:
    parts = list(parts_of(jobs))
    if len(parts) > 1:
        jobs = _by_key(connection, parts, common)
    answers: dict[int, Answer] = {}
    for _ in range(TRIES):
        left = [each for each in jobs if each[0] not in answers]
        if not left:
            return answers
        # First all that is new, then all changes: the order of the locks is the same in every call.
        found: dict[int, Answer] = {}
        for part in parts_of(left):
            found |= _insert_keyed_part(connection, part, common)
        answers |= settle(connection, left, dict(_first_created(found)), common)
    if len(answers) < len(jobs):
        raise _never_still(None, common["kind"])
    return answers


def _insert_keyed_part(connection: sa.Connection, part: list[Numbered], common: Mapping[str, Any]) -> dict[int, Answer]:
    answers: dict[int, Answer] = {}
    for _ in range(TRIES):
        left = [each for each in part if each[0] not in answers]
        if not left:
            return answers
        channel = channel_of_due(connection, [job for _, job in left])
        binds = {**common, **arrays(left, many.KEYED_FIELDS), "channel": channel}
        for row in execute(connection, many.enqueue_keyed_rows(), binds):
            if row.id is not None:
                answers[left[row.ord - 1][0]] = Answer(row.id, row.created, row.unique_key)
    if len(answers) < len(part):
        raise _never_still(None, common["kind"])
    return answers


def _by_key(connection: sa.Connection, parts: list[list[Numbered]], common: Mapping[str, Any]) -> list[Numbered]:
    """The jobs in the order of their keys, which are derived first: each statement alone would order only its own."""
    keyed = []
    for part in parts:
        binds = {"kind": common["kind"], **arrays(part, many.KEY_FIELDS)}
        for row in execute(connection, many.keys_of_rows(), binds):
            n, job = part[row.ord - 1]
            manner = job.manner.but(unique_key=row.unique_key, unique_names=None)
            keyed.append((row.unique_key.encode(), n, NewJob(job.args, manner)))
    return [(n, job) for _, n, job in sorted(keyed, key=lambda each: each[:2])]


def _unkeyed(binds: Mapping[str, Any]) -> dict[str, Any]:
    """Without what only keys need: SQLAlchemy would take it for columns of the INSERT."""
    return {name: value for name, value in binds.items() if name not in ("unique_key", "unique_names", "max_wait")}


def _first_created(answers: Mapping[int, Answer]) -> Iterator[tuple[int, Answer]]:
    """Of several rows with one key only the first has created the job."""
    seen: set[int] = set()
    for n, answer in sorted(answers.items()):
        yield n, Answer(answer.id, answer.created and answer.id not in seen, answer.key)
        seen.add(answer.id)


def _never_still(key: str | None, kind: str) -> UniqueKeyError:
    what = f"unique key {key!r}" if key else f"a unique key of {kind}"
    problem = f"{what} was taken and freed again during each of {TRIES} tries; enqueue once more"
    return UniqueKeyError(problem, key=key or "", holder=None)
