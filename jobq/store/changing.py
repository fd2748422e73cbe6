"""What an enqueue does with the waiting job that holds its unique key: replace it, or give it another time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from jobq.errors import UniqueKeyError
from jobq.notify import channel_for
from jobq.statements import change as statements
from jobq.store.newjobs import Answer, Change, NewJob, Numbered, arrays, execute, parts_of

STATEMENTS: dict[Change, tuple[Callable[[], sa.Executable], dict[str, Any]]] = {
    "replace": (statements.replace, statements.REPLACE_FIELDS),
    "reschedule": (statements.reschedule, statements.RESCHEDULE_FIELDS),
}


def settle(
    connection: sa.Connection, jobs: Sequence[Numbered], found: Mapping[int, Answer], common: Mapping[str, Any]
) -> dict[int, Answer]:
    """Do with the holders of keys as the jobs say that found them. `found`: who was inserted, or holds the key.

    Missing in the answers: those whose holder was claimed, given back or ended meanwhile, to be tried once more. Of
    several jobs with one key the last one counts.

    Raises: UniqueKeyError, for a holder of another kind.
    """
    answers = {n: found[n] for n, job in jobs if found[n].created or job.manner.change is None}
    for change in STATEMENTS:
        asking = [(n, job) for n, job in jobs if n not in answers and job.manner.change == change]
        became = _change(connection, change, asking, found, common) if asking else {}
        answers |= {n: found[n]._replace(changed=became[found[n].id]) for n, _ in asking if found[n].id in became}
    return answers


def _change(
    connection: sa.Connection, change: Change, asking: list[Numbered], found: Mapping[int, Answer],
    common: Mapping[str, Any],
) -> dict[int, bool]:  # fmt: skip
    """By the holders' ids, whether they were changed."""
    statement, fields = STATEMENTS[change]
    by_id = {found[n].id: (n, job) for n, job in sorted(asking, key=lambda each: each[0])}
    became: dict[int, bool] = {}
    for part in parts_of(_with_ids(by_id)):
        channel = channel_for(connection, {job.manner.binds["queue"] for _, job in part})
        binds = {"the_kind": common["kind"], "the_callsite": common["callsite"], "channel": channel}
        for row in execute(connection, statement(), {**binds, **arrays(part, fields)}):
            if row.id is not None:
                became[row.id] = row.is_changed
                _refuse_other_kind(row, found[by_id[row.id][0]], change, common["kind"])
    return became


def _with_ids(by_id: Mapping[int, Numbered]) -> Iterator[Numbered]:
    """In the order of the ids, in which the rows are locked."""
    for id_, (n, job) in sorted(by_id.items()):
        yield n, NewJob(job.args, job.manner.but(ids=id_))


def _refuse_other_kind(row: sa.Row[Any], answer: Answer, change: Change, kind: str) -> None:
    if row.kind != kind:
        problem = f"unique key {answer.key!r} is held by job {answer.id} of kind {row.kind}, {kind} cannot {change} it"
        raise UniqueKeyError(problem, key=answer.key or "", holder=answer.id)
