"""`jobq stats`."""

from __future__ import annotations

from collections.abc import Iterator

from jobq import admin
from jobq.model import State
from jobq.report import KindStats, QueueStats, Stats
from jobq_cli.connect import connect
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import Column, print_json, print_lines, print_table
from jobq_cli.text import as_dict, moment, number, span

QUEUES: list[Column[QueueStats]] = [
    Column("queue", lambda queue: queue.queue, shrinks=True),
    Column("ready", lambda queue: number(queue.ready, more=queue.more_ready), right=True),
    Column("scheduled", lambda queue: number(queue.scheduled, more=queue.more_scheduled), right=True),
    Column("running", lambda queue: str(queue.running), right=True),
    Column("done", lambda queue: str(queue.done), right=True),
    Column("dead", lambda queue: str(queue.dead), right=True, style=lambda queue: "red" if queue.dead else ""),
    Column("oldest", lambda queue: span(queue.oldest_due), right=True),
    Column("per s", lambda queue: f"{queue.rate_per_second:.1f}", right=True),
]
KINDS: list[Column[KindStats]] = [
    Column("kind", lambda kind: kind.kind, shrinks=True),
    Column("finished", lambda kind: str(kind.finished), right=True),
    Column("median", lambda kind: span(kind.p50), right=True),
    Column("95%", lambda kind: span(kind.p95), right=True),
    Column("longest", lambda kind: span(kind.longest), right=True),
]


def stats(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Count what waits, runs and has ended, by queue and by kind.

    The number to alert on is the age of the oldest due job. Counts of waiting jobs stop at 10000 in each queue and
    then read 10000+.

    \b
    Examples:
      jobq stats
      jobq stats --json | jq .oldest_due_seconds
    """
    with connect(database_url) as connection:
        found = admin.stats(connection)
    if as_json:
        print_json([{**as_dict(found), "queues": [as_dict(queue) for queue in found.queues]}])
        return
    print_lines(_totals(found))
    if found.queues:
        print_lines([("", "")])
        print_table(found.queues, QUEUES)
    if found.kinds:
        print_lines([("", "")])
        print_table(found.kinds, KINDS, title="How long jobs took that ended in the last hour")
    print_lines(_remarks(found))


def _totals(found: Stats) -> Iterator[tuple[str, str]]:
    more = {State.PENDING: found.more_pending}
    counts = [f"{number(count, more=more.get(state, False))} {state}" for state, count in found.states.items()]
    yield ", ".join(counts), "bold"
    alive = f"{found.live_workers} live worker{'' if found.live_workers == 1 else 's'}"
    yield f"oldest due job {span(found.oldest_due)}, {found.dead_last_hour} dead in the last hour, {alive}", ""


def _remarks(found: Stats) -> Iterator[tuple[str, str]]:
    """What a newcomer would ask next: why does nothing run?"""
    for queue in found.queues:
        if queue.paused_until is not None:
            reason = f": {queue.pause_reason}" if queue.pause_reason else ""
            yield f"queue {queue.queue} is paused until {moment(queue.paused_until)}{reason}", "yellow"
    for kind, waiting in found.unknown_kinds.items():
        jobs = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
        yield f"{jobs} for kind {kind}, which no live worker knows", "yellow"
