"""How attempts have ended, where the answer to that was lost."""

from __future__ import annotations

import json
from collections.abc import Iterable

import sqlalchemy as sa

from jobq.statements import recorded as statements
from jobq.store.ending import Ending, Fence, held_binds


def recorded(connection: sa.Connection, fences: Iterable[Fence]) -> set[int]:
    """Of ends of one worker that may have been written before (the answer was lost), the ids of those that were."""
    ordered = sorted(fences, key=lambda fence: fence.id)
    return set(connection.execute(statements.recorded(), held_binds(ordered)).scalars())


def was_put_back(connection: sa.Connection, ending: Ending) -> bool:
    """Whether this job went back by this ending, written by an earlier try whose answer was lost."""
    probe = "[]" if ending.error is None else json.dumps([{"attempt": ending.fence.attempt}])
    binds = {"the_id": ending.fence.id, "the_attempt": ending.fence.attempt, "probe": probe}
    return connection.execute(statements.was_put_back(), binds).first() is not None


def settle(connection: sa.Connection, fence: Fence) -> bool:
    """Whether a COMMIT without an answer has ended this job as done. In one transaction, read committed.

    First the row that it would have deleted, locked: that waits for a commit still in flight. Then the other table.
    """
    if connection.execute(statements.lock_held(), fence.binds()).first() is not None:
        return False
    return connection.execute(statements.ended_by_us(), fence.binds()).first() is not None
