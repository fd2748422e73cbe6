"""What handlers report, and who waits for an end: written and told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from jobq.notify import channel_of_end
from jobq.statements import notify
from jobq.statements import report as statements
from jobq.store.ending import Fence
from jobq.store.leasing import lost_of


def report(connection: sa.Connection, patches: Mapping[Fence, str], *, waits: bool) -> tuple[set[Fence], set[Fence]]:
    """Merge JSON objects into the meta of jobs of one worker. Returns the fences that were written, and those lost.

    The others are ours and locked by somebody; with `waits` there are none. In autocommit.
    """
    written = _write(connection, statements.report(waits=waits), patches)
    rest = {fence: text for fence, text in patches.items() if fence not in written}
    if not rest:
        return written, set()
    written |= _write(connection, statements.report_done(), rest)
    return written, lost_of(connection, set(patches) - written)


def tell_ended(connection: sa.Connection, ids: Iterable[int]) -> None:
    """Have everybody look who waits for the end of these jobs."""
    channels = [channel_of_end(id_) for id_ in ids]
    connection.execute(notify.tell(), {"channels": channels, "texts": [""] * len(channels)})


def _write(connection: sa.Connection, statement: sa.Executable, patches: Mapping[Fence, str]) -> set[Fence]:
    ordered = sorted(patches, key=lambda fence: (fence.id, fence.attempt))  # of two attempts of a job the later counts
    binds = {
        "me": ordered[0].worker_id,
        "ids": [fence.id for fence in ordered],
        "attempts": [fence.attempt for fence in ordered],
        "patches": [patches[fence] for fence in ordered],
    }
    ids = set(connection.execute(statement, binds).scalars())
    return {fence for fence in ordered if fence.id in ids}
