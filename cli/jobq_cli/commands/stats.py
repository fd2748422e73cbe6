"""`jobq stats`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import typer

from jobq import admin
from jobq.diagnosis import too_old
from jobq.model import State
from jobq.report import KindStats, QueueStats, Stats
from jobq.tally import RECENT_LIMIT
from jobq_cli.connect import connect
from jobq_cli.durations import parse_duration
from jobq_cli.failures import Failed
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.output import Column, print_json, print_lines, print_table
from jobq_cli.text import as_dict, moment, number, pause_end, per_second, span
from jobq_cli.watch import again

QUEUES: list[Column[QueueStats]] = [
    Column(
        "queue", lambda queue: queue.queue, shrinks=True, style=lambda queue: "yellow" if queue.paused_until else ""
    ),
    Column("ready", lambda queue: number(queue.ready, more=queue.more_ready), right=True),
    Column("scheduled", lambda queue: number(queue.scheduled, more=queue.more_scheduled), right=True),
    Column("running", lambda queue: str(queue.running), right=True),
    Column("done", lambda queue: number(queue.done, more=queue.more_done), right=True),
    Column(
        "dead",
        lambda queue: number(queue.dead, more=queue.more_dead),
        right=True,
        style=lambda queue: "red" if queue.dead else "",
    ),
    Column("oldest", lambda queue: span(queue.oldest_due), right=True),
    Column("per s", lambda queue: per_second(queue.rate_per_second), right=True),
]
KINDS: list[Column[KindStats]] = [
    Column("kind", lambda kind: kind.kind, shrinks=True),
    Column("finished", lambda kind: str(kind.finished), right=True),
    Column("median", lambda kind: span(kind.p50), right=True),
    Column("95%", lambda kind: span(kind.p95), right=True),
    Column("longest", lambda kind: span(kind.longest), right=True),
]


CLEAR = "\x1b[H\x1b[2J"
LATE = timedelta(minutes=5)  # a leader sums a minute within two of its end
FailIfOlder = Annotated[
    timedelta | None,
    typer.Option(
        metavar="SPAN", parser=parse_duration, help="Exit with 1 when a due job of any queue waits longer, such as 5m."
    ),
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Show it again and again, until Ctrl-C.")]
Every = Annotated[
    timedelta | None, typer.Option(metavar="SPAN", parser=parse_duration, help="How often, with --watch [2s].")
]


def stats(
    fail_if_older: FailIfOlder = None,
    watch: Watch = False,
    every: Every = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Count what waits, runs and has ended, by queue and by kind.

    The number to alert on is the age of the oldest due job. Counts of waiting and dead jobs stop at 10000 in each queue
    and then read 10000+; done jobs are those of the last 24 hours.

    \b
    Examples:
      jobq stats
      jobq stats --watch --every 5s
      jobq stats --fail-if-older 5m
      jobq stats --json | jq .oldest_due_seconds
    """
    if watch and fail_if_older is not None:
        raise typer.BadParameter("--fail-if-older answers once; it does not go with --watch")
    if every is not None and not watch:
        raise typer.BadParameter("--every says how often --watch looks: add --watch")
    with connect(database_url) as connection:
        for _ in again(connection, every or timedelta(seconds=2)) if watch else [None]:
            found = admin.stats(connection)
            _show(found, as_json=as_json, clear=watch)
            if fail_if_older is not None and (problem := too_old(found, fail_if_older)) is not None:
                raise Failed(problem)


def _show(found: Stats, *, as_json: bool, clear: bool) -> None:
    if as_json:
        print_json([{**as_dict(found), "queues": [as_dict(queue) for queue in found.queues]}])
    else:
        _show_tables(found, clear=clear)
    sys.stdout.flush()


def _show_tables(found: Stats, *, clear: bool) -> None:
    if clear:
        print(CLEAR if sys.stdout.isatty() else "", end="\n" if not sys.stdout.isatty() else "")
        print_lines([(moment(found.at), "dim")])
    print_lines(_totals(found))
    if found.queues:
        print_lines([("", "")])
        print_table(found.queues, QUEUES)
    if found.kinds:
        print_lines([("", "")])
        print_table(found.kinds, KINDS, title="How long jobs took that ended in this hour and the one before")
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
            yield f"queue {queue.queue} is paused {pause_end(queue.paused_until)}{reason}", "yellow"
    if found.left_behind:
        handlers = "1 handler" if found.left_behind == 1 else f"{found.left_behind} handlers"
        yield f"{handlers} that could not be stopped may still run (see: jobq workers)", "yellow"
    for kind, waiting in found.unknown_kinds.items():
        jobs = "1 job waits" if waiting == 1 else f"{number(waiting, more=found.more_pending)} jobs wait"
        yield f"{jobs} for kind {kind}, which no live worker knows", "yellow"
    if found.summed_until is not None:
        age = found.at - found.summed_until
        text = f"what ended is summed up to {span(age)} ago, and counted one by one since, {RECENT_LIMIT} jobs at most"
        yield text, "yellow" if age > LATE else "dim"
