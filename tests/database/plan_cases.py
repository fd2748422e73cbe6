"""What runs all day, and how each of it may read the big tables: by which index, and how many pages for a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import sqlalchemy as sa
from plan_rows import QUEUES
from store_rows import ME

import jobq
from jobq.database import SESSION_SETTINGS
from jobq.model import State
from jobq.report import READY_LIMIT
from jobq.store import claiming, ending, leasing, putting_back, rescuing
from jobq.store.counting import ROOM
from jobq.store.ending import Ending, Fence
from jobq.tables import all_jobs, finished_jobs, jobs
from jobq.worker.lanes import Lanes

MOST_SORTED = 1_000  # rows: a claim's worth
COUNTED = READY_LIMIT + ROOM  # jobs of a lane, which are sorted by kind
KINDS = [f"k{n}" for n in range(20)]
DAY = timedelta(days=1)
BY_ID, BY_LANE, NEXT = "jobs by jobs_pkey", "jobs by jobs_lane", "one by jobs_lane"
BY_PLACE = "jobs by Tid Scan"
ENDED_BY_ID, DEAD = "finished_jobs by finished_jobs_pkey", "finished_jobs by finished_jobs_dead"
SEARCH = "jobs by Seq Scan"  # for what lost workers held: no index names a worker (DESIGN.md, 2 and 6)


@dataclass(frozen=True, slots=True)
class Taken(Fence):
    """A claimed job, and where it is."""

    place: str


Run: TypeAlias = Callable[[sa.Connection, Sequence[Taken]], int]


@dataclass(frozen=True)
class Case:
    """A function, what it returns for each thing that it is about, and how it may read the big tables for that."""

    run: Run
    scans: frozenset[str]
    pages: float  # most for each job
    settings: dict[str, str]
    most_sorted: int = MOST_SORTED


def lanes(*queues: str) -> Lanes:
    found = Lanes()
    found.serve({queue: 1 + n % 4 for n, queue in enumerate(queues or [f"q{n}" for n in range(QUEUES)])})
    return found


def claim(connection: sa.Connection, held: Sequence[Taken]) -> int:
    """A batch of one queue, as while it is busy."""
    asked = lanes("q7").ask(100)
    return len(claiming.claim(connection, asked, worker_id=ME, kinds=KINDS, most=100).jobs)


def sweep(connection: sa.Connection, held: Sequence[Taken]) -> int:
    """All lanes from their start."""
    asked = lanes().ask(1_000)
    return len(claiming.claim(connection, asked, worker_id=ME, kinds=KINDS, most=1_000).jobs)


def claim_head(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(claiming.claim_slots(connection, ["q38"], worker_id=ME, kinds=KINDS, most=9, in_order=True).jobs)


def claim_some(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(claiming.claim_slots(connection, ["q39"], worker_id=ME, kinds=KINDS, most=9, in_order=False).jobs)


def complete_done(connection: sa.Connection, held: Sequence[Taken]) -> int:
    """All of them where their claim has put them."""
    ids, attempts, places = zip(*[(one.id, one.attempt, one.place) for one in held], strict=True)
    nothing = [None] * len(ids)
    assert ending.finish_done(connection, ids, attempts, places, nothing, worker_id=ME, keep=DAY) is None
    return len(ids)


def complete(connection: sa.Connection, held: Sequence[Taken]) -> int:
    ends = [Ending(fence, State.DONE, "ok", keep=DAY) for fence in held]
    return len(ending.finish(connection, ends))


def complete_one(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(ending.finish(connection, [Ending(held[0], State.DONE, "ok", keep=DAY)]))


def put_back(connection: sa.Connection, held: Sequence[Taken]) -> int:
    back = Ending(held[0], State.PENDING, error="{}", delay=DAY)
    return int(putting_back.put_back(connection, back))


def give_back(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(putting_back.give_back(connection, held, channel=None))


def beat(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return int(leasing.beat(connection, ME)) and len(held) - len(leasing.lost_of(connection, held))


def survey(connection: sa.Connection, held: Sequence[Taken]) -> int:
    """Where to claim: by the queue."""
    return len(claiming.survey(connection).queues)


def look_for_lost_workers(connection: sa.Connection, held: Sequence[Taken]) -> int:
    """There is none: as every few seconds."""
    connection.exec_driver_sql("DELETE FROM jobq.workers WHERE name = 'lost'")
    return 1 if not rescuing.lost_workers(connection, connected_for=DAY).lost else 0


def rescue(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(rescuing.rescue(connection, connected_for=DAY, look_everywhere=False, channel=None).jobs)


def retry(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.retry(connection, *range(7, 20_000, 1_000)).ids)


def get(connection: sa.Connection, held: Sequence[Taken]) -> int:
    found = jobq.get(connection, 5), jobq.get(connection, 10**9)
    return len([job for job in found if job is not None])


def list_newest(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.jobs(connection))


def list_queue(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.jobs(connection, all_jobs.c.queue == "q3"))


def list_pending(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.jobs(connection, jobs.c.worker_id.is_(None)))


def list_dead(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.jobs(connection, finished_jobs.c.state == "dead"))


def recent(connection: sa.Connection, held: Sequence[Taken]) -> int:
    asked = jobq.kind("k3", queue="q3").options(keep=2 * DAY).args(n=1_003)
    return int(jobq.recent(connection, asked, within=2 * DAY) is not None)


def stats(connection: sa.Connection, held: Sequence[Taken]) -> int:
    return len(jobq.stats(connection).queues)


def of_worker(run: Run, *scans: str, pages: float, most_sorted: int = MOST_SORTED) -> Case:
    """On a connection of the worker's own."""
    return Case(run, frozenset(scans), pages, dict(SESSION_SETTINGS), most_sorted)


def of_caller(run: Run, *scans: str, pages: float, most_sorted: int = MOST_SORTED) -> Case:
    """In the application's or the command line's session."""
    return Case(run, frozenset(scans), pages, {}, most_sorted)


# A claimed job takes 6 pages and a completed one 10; 8 and 16 before PostgreSQL 17, which looks ids up in one go.
CASES = [
    of_worker(claim, NEXT, BY_PLACE, pages=10),
    of_worker(sweep, NEXT, BY_PLACE, pages=10),
    of_worker(claim_head, "first by jobs_lane", BY_LANE, "one by jobs_pkey", BY_ID, pages=120),
    of_worker(claim_some, NEXT, BY_LANE, BY_ID, pages=60),
    of_worker(complete_done, BY_PLACE, pages=22),
    of_worker(complete, BY_ID, pages=22),
    of_worker(complete_one, BY_ID, pages=30),
    of_worker(put_back, BY_ID, pages=20),
    of_worker(give_back, BY_ID, pages=12),
    of_worker(beat, BY_ID, pages=3),
    of_worker(survey, BY_LANE, pages=12),
    of_worker(look_for_lost_workers, pages=20),
    of_worker(rescue, SEARCH, BY_ID, pages=100, most_sorted=10_000),  # the workers' ids of what runs
    of_caller(retry, ENDED_BY_ID, pages=40),
    of_caller(get, BY_ID, ENDED_BY_ID, pages=20),
    of_caller(list_newest, BY_ID, ENDED_BY_ID, pages=3),
    of_caller(recent, "finished_jobs by finished_jobs_recent", pages=10),
    # For each queue: it counts up to READY_LIMIT that are due, of rows that no vacuum has seen, each on its page.
    of_caller(stats, BY_LANE, DEAD, "finished_jobs by finished_jobs_finished", pages=20_000, most_sorted=COUNTED),
]
# How many jobs a predicate fits the planner has to know: without statistics it takes any for rare, and sorts.
WITH_PREDICATES = [
    of_caller(list_queue, BY_ID, ENDED_BY_ID, pages=30),
    of_caller(list_pending, BY_ID, pages=12),
    of_caller(list_dead, ENDED_BY_ID, DEAD, pages=60),
]
