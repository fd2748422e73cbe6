"""What is going on now: queues, workers and running jobs at a cost that does not grow with what waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobq.bind import Bind, connection_of
from jobq.model import Progress
from jobq.reading import parsed, progress_of, span_of
from jobq.report import READY_LIMIT, Stats, WorkerRow, worker_of
from jobq.statements import running as statements
from jobq.store.counting import ROOM, counts
from jobq.store.switching import interpreted
from jobq.tally import stats_of

SHOWN = 500


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs. `worker` None: its worker's row is gone, and it is about to be given to another.

    timeout: its own, or that of its handler; one of `app.queue(...)` is known to workers alone.
    """

    id: int
    queue: str
    kind: str
    priority: int
    attempt: int
    worker_id: int
    worker: str | None
    runs_for: timedelta
    timeout: timedelta | None
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Member:
    """A worker, and for how long nothing has been heard of it: a heartbeat comes six times a lease."""

    worker: WorkerRow
    silent_for: timedelta


@dataclass(frozen=True, slots=True)
class Overview:
    """`jobs` are those that have run longest; `running` is how many run, counted as in QueueStats."""

    stats: Stats
    members: tuple[Member, ...]
    jobs: tuple[RunningJob, ...]
    running: int

    @property
    def at(self) -> datetime:
        return self.stats.at


def overview(session: Bind, /, *, queue: str | None = None, shown: int = SHOWN) -> Overview:
    """All of it, or what has to do with one queue: its jobs, and the workers that serve it; up to `shown` jobs."""
    connection = connection_of(session, "overview")
    found = stats_of(counts(connection))
    binds = {"most": READY_LIMIT + ROOM, "only_queue": queue, "shown": shown}
    with interpreted(connection):
        rows = connection.execute(statements.running(), binds).mappings().all()
    members = _members(connection.execute(statements.members()).mappings().all(), rows)
    names = {each.worker.id: each.worker.name for each in members}
    jobs = tuple(_job(row, names.get(row["worker_id"])) for row in rows if row["is_here"] and row["place"] <= shown)
    return Overview(
        found if queue is None else _only(found, queue),
        tuple(each for each in members if queue is None or _serves(each.worker, queue)),
        jobs,
        next((row["running_here"] for row in rows if row["is_here"]), 0),
    )


def _only(found: Stats, queue: str) -> Stats:
    return replace(found, queues=tuple(each for each in found.queues if each.queue == queue))


def _serves(worker: WorkerRow, queue: str) -> bool:
    return worker.queues is None or queue in worker.queues


def _members(rows: Iterable[Mapping[Any, Any]], running: Iterable[Mapping[Any, Any]]) -> list[Member]:
    runs = {row["worker_id"]: row["running_there"] for row in running}
    return [_member(row, runs.get(row["id"], 0)) for row in rows]


def _member(row: Mapping[Any, Any], runs: int) -> Member:
    silent_for = max(row["read_at"] - row["heard_at"], timedelta(0))
    return Member(worker_of({**row, "running": runs}), silent_for)


def _job(row: Mapping[Any, Any], worker: str | None) -> RunningJob:
    names = ("id", "queue", "kind", "priority", "attempt", "worker_id")
    began = row["attempted_at"] or row["read_at"]
    return RunningJob(
        **{name: row[name] for name in names},
        worker=worker,
        runs_for=max(row["read_at"] - began, timedelta(0)),
        timeout=span_of(parsed(row["timeout"])) or row["timeout_of_kind"],
        progress=_progress(row["progress"], row["attempt"]),
    )


def _progress(text: str | None, attempt: int) -> Progress | None:
    """Of this attempt: what an earlier one has said is no longer so. None for what jobq has not written."""
    found = progress_of(parsed(text))
    return found if found is not None and found.attempt in (attempt, 0) else None
