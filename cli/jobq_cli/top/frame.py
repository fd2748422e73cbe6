"""The screen of `jobq top` as lines: queues, workers, running jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any

from jobq.model import Progress
from jobq.overview import Member, Overview, RunningJob
from jobq.report import QueueStats
from jobq_cli.output import Column
from jobq_cli.text import load, number, per_second, printable, span
from jobq_cli.top.layout import UNLIMITED, Line, cropped, shares, table

BAR = 10
BLOCKS = ("\u2588\u2591", "#.")  # full and empty; where the terminal has no such characters
NEARLY = 0.8  # of its timeout
KEYS = "q quits"


@dataclass(frozen=True, slots=True)
class Size:
    """Of a terminal; None: as many lines as there are."""

    width: int = UNLIMITED
    height: int | None = None
    blocks: str = BLOCKS[0]


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the screen, and the words where it is empty.

    first: the key of what to keep where not all fit. unread: how many records there are besides.
    """

    records: Sequence[Any]
    columns: Sequence[Column[Any]]
    nothing: str
    first: Callable[[Any], Any]
    unread: int = 0

    @property
    def wanted(self) -> int:
        """Lines, besides the titles."""
        return max(len(self.records) + (self.unread > 0), 1)

    def lines(self, width: int, rows: int) -> list[Line]:
        """The titles, and so many lines for the records."""
        if not self.records:
            return [[(self.nothing, "dim")]]
        kept = self._kept(rows)
        lines = table(kept, self.columns, width)
        left = len(self.records) - len(kept) + self.unread
        return [*lines, [(f"and {left} more", "dim")]] if left else lines

    def _kept(self, rows: int) -> list[Any]:
        """In the order that they came in, so that none jumps about while it is looked at."""
        if self.wanted <= rows:
            return list(self.records)
        chosen = sorted(range(len(self.records)), key=lambda n: self.first(self.records[n]))[: max(rows - 1, 0)]
        return [self.records[n] for n in sorted(chosen)]


def frame(found: Overview, size: Size, *, queue: str | None = None) -> list[Line]:
    """The whole screen; never more lines than fit. `queue`: what was asked for, None for all."""
    parts = parts_of(found, size.blocks, queue)
    rows = [part.wanted for part in parts]
    if size.height is not None:
        # The head, each part's titles and the line before it, the keys and the line before them.
        rows = shares(max(size.height - 1 - 2 * len(parts) - 2, len(parts)), rows)
    lines = [_head(found)]
    for part, lines_for in zip(parts, rows, strict=True):
        lines += [[], *part.lines(size.width, lines_for)]
    if size.height is not None:
        lines = [*lines, [], [(KEYS, "dim")]][: size.height]
    return [cropped(line, size.width) for line in lines]


def parts_of(found: Overview, blocks: str, queue: str | None) -> tuple[Part, Part, Part]:
    no_queue = "no queues yet" if queue is None else printable(unknown(queue))
    return (
        Part(found.stats.queues, QUEUES, no_queue, lambda queue: (-queue.running, -queue.ready)),
        Part(found.members, MEMBERS, "no workers (start one with: jobq run module:app)", _first_member),
        Part(
            found.jobs,
            jobs_columns(blocks),
            "nothing runs",
            lambda job: -job.runs_for,
            unread=found.running - len(found.jobs),
        ),
    )


def _head(found: Overview) -> Line:
    alive = sum(member.worker.alive for member in found.members)
    ready = sum(queue.ready for queue in found.stats.queues)
    more = any(queue.more_ready for queue in found.stats.queues)
    rate = sum(queue.rate_per_second for queue in found.stats.queues)
    oldest = max((queue.oldest_due for queue in found.stats.queues if queue.oldest_due is not None), default=None)
    workers = f"{alive} live worker{'' if alive == 1 else 's'}"
    said = f"{workers}, {found.running} running, {number(ready, more=more)} ready, oldest {span(oldest)}"
    return [(f"{found.at.astimezone(UTC):%H:%M:%S} UTC", "dim"), (f"  {said}, {per_second(rate)} per s", "bold")]


QUEUES: list[Column[QueueStats]] = [
    Column(
        "queue",
        lambda queue: f"{queue.queue} (paused)" if queue.paused_until else queue.queue,
        shrinks=True,
        style=lambda queue: "yellow" if queue.paused_until else "",
    ),
    Column("ready", lambda queue: number(queue.ready, more=queue.more_ready), right=True, style=lambda queue: "cyan"),
    Column("running", lambda queue: str(queue.running), right=True, style=lambda queue: "blue"),
    Column("scheduled", lambda queue: number(queue.scheduled, more=queue.more_scheduled), right=True),
    Column(
        "dead",
        lambda queue: number(queue.dead, more=queue.more_dead),
        right=True,
        style=lambda queue: "red" if queue.dead else "",
    ),
    Column("per s", lambda queue: per_second(queue.rate_per_second), right=True),
    Column("oldest", lambda queue: span(queue.oldest_due), right=True),
]
MEMBERS: list[Column[Member]] = [
    Column(
        "worker",
        lambda member: f"{member.worker.name} (leader)" if member.worker.is_leader else member.worker.name,
        shrinks=True,
    ),
    Column("running", lambda member: load(member.worker.running, member.worker.concurrency), right=True),
    Column(
        "left behind",
        lambda member: str(member.worker.left_behind),
        right=True,
        style=lambda member: "yellow" if member.worker.left_behind else "",
    ),
    Column("up", lambda member: span(member.worker.read_at - member.worker.started_at), right=True),
    Column(
        "heard",
        lambda member: f"{span(member.silent_for)} ago{'' if member.worker.alive else ', lost'}",
        right=True,
        style=lambda member: "green" if member.worker.alive else "red",
    ),
]


def unknown(queue: str) -> str:
    return f"no queue {queue} (see: jobq stats)"


def jobs_columns(blocks: str) -> list[Column[RunningJob]]:
    return [
        Column("job", lambda job: str(job.id), right=True),
        Column("kind", lambda job: job.kind, shrinks=True),
        Column("queue", lambda job: job.queue, shrinks=True),
        Column("worker", lambda job: job.worker or "lost", shrinks=True, style=lambda job: "" if job.worker else "red"),
        Column("for", lambda job: span(job.runs_for), right=True, style=_urgency),
        Column("timeout", lambda job: span(job.timeout), right=True),
        Column("progress", lambda job: bar(job.progress, blocks), style=lambda job: "green"),
        Column("", lambda job: job.progress.message if job.progress else "", shrinks=True),
    ]


def bar(progress: Progress | None, blocks: str) -> str:
    """`####......  40%`; full only when it is."""
    if progress is None:
        return ""
    full = int(progress.fraction * BAR)
    return f"{blocks[0] * full}{blocks[1] * (BAR - full)} {int(progress.fraction * 100):3d}%"


def _urgency(job: RunningJob) -> str:
    if job.timeout is None or job.timeout <= timedelta(0):
        return ""
    return "red" if job.runs_for > job.timeout else "yellow" if job.runs_for > job.timeout * NEARLY else ""


def _first_member(member: Member) -> tuple[bool, int]:
    """Those that are in trouble, then the busiest."""
    return member.worker.alive, -member.worker.running
