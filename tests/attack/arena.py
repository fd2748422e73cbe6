"""Workers of attack_app.py on a database that keeps a record; faults are written down as they happen."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from audited import violations
from board import Board
from fleet import Fleet, Member, fleet_on, until
from journal import keep_journal
from record import RECORD

import jobq

HERE = Path(__file__).parent
LEASE = 1.5
RESCUED_SECONDS = LEASE + 0.5 + 3  # lease, rescue interval, and what a busy machine may take
LIMITED = {"pair": 3, "line": 2}  # queues of attack_app.py, and how many jobs come together: one more than may run
ATTEMPTS = {"once": 1, "fail": 3}  # of the kinds that have not 50
TICKING = {"ATTACK_TICKS": "1"}  # the environment of workers that have a schedule
THAWED = "UPDATE faults SET until = clock_timestamp() WHERE pid = :pid AND what = 'frozen' AND until IS NULL"
BEGUN = "SELECT count(DISTINCT job_id) FROM runs WHERE job_id = ANY(:ids) AND attempt >= :attempt AND what = 'began'"
PROMISE = "INSERT INTO promised SELECT id, run_at, unique_key FROM jobq.all_jobs WHERE id = ANY(:ids)"


@dataclass
class Arena:
    """`seed`: the fault that the workers have, of seeds.py; none by default."""

    board: Board
    fleet: Fleet
    seed: str = ""

    def start(
        self, *, point: str = "", how: str = "SIGKILL", env: dict[str, str] | None = None, **options: Any
    ) -> Member:
        """A worker that ends, or stops, at a point."""
        told = {"PYTHONPATH": str(HERE), "ATTACK_POINT": point, "ATTACK_HOW": how, "ATTACK_SEED": self.seed}
        options = {"lease": LEASE, "poll_interval": 0.2, **options}
        return self.fleet.start(app="attack_app:app", env={**told, **(env or {})}, **options)

    def enqueue(
        self, kind: str, number: int, queue: str = "default", delay: timedelta | None = None, **args: Any
    ) -> list[int]:
        """So many jobs, in a transaction that commits; what is promised of them is written down."""
        handler = jobq.kind(kind, queue=queue).options(max_attempts=ATTEMPTS.get(kind, 50), delay=delay)
        with self.board.engine.begin() as connection:
            ids = [each.id for each in jobq.enqueue_many(connection, handler, [args] * number)]
            connection.execute(sa.text(PROMISE), {"ids": ids})
        return ids

    def enqueue_limited(self, number: int, seconds: float) -> list[int]:
        """For each queue that has a limit, so many times as many jobs as come together."""
        few = LIMITED.items()
        return [id_ for queue, each in few for id_ in self.enqueue("work", number * each, queue, seconds=seconds)]

    def enqueue_unique(self, key: str, seconds: float) -> None:
        """A job, unless an open one has its key: then nothing. In a queue of its own, so that no crowd is before it."""
        handler = jobq.kind("work", queue="keyed").options(max_attempts=50, unique_key=key, on_conflict="ignore")
        with self.board.engine.begin() as connection:
            given = jobq.enqueue(connection, handler, seconds=seconds)
            connection.execute(sa.text(PROMISE), {"ids": [given.id] if given.created else []})

    def keyed(self) -> int:
        """How many jobs were enqueued with a unique key."""
        return int(self.board.one("SELECT count(*) FROM promised WHERE unique_key IS NOT NULL"))

    def ticks(self) -> int:
        """How many jobs the schedule has enqueued."""
        return int(self.board.one("SELECT count(*) FROM jobq.all_jobs WHERE meta ? 'tick'"))

    def note(self, member: Member, what: str) -> None:
        """It has been killed, or stopped, by now."""
        self.board.rows("INSERT INTO faults (pid, what) VALUES (:pid, :what)", pid=member.pid, what=what)

    def kill(self, member: Member) -> None:
        member.kill()
        self.note(member, "killed")

    def until_dead(self, member: Member) -> None:
        """Wait until it has met its point."""
        assert member.ends() == -signal.SIGKILL, member.said
        self.note(member, "killed")

    def freeze(self, member: Member) -> None:
        assert member.is_alive, f"it ended by itself: {member.said}"
        member.freeze()
        self.note(member, "frozen")

    def thaw(self, member: Member) -> None:
        self.board.rows(THAWED, pid=member.pid)
        member.thaw()

    def until_begun(self, ids: Sequence[int], attempt: int = 1, within: float = 20) -> None:
        """Wait until this attempt of each has begun, or a later one: a claim may be given back."""
        until(
            lambda: self.board.one(BEGUN, ids=list(ids), attempt=attempt) == len(ids),
            f"attempt {attempt} of {len(ids)} jobs",
            within=within,
        )

    def violations(self, *, is_on_time: bool = True) -> list[str]:
        """What the record shows, and whether the attack had to wait for a job in vain."""
        late = [] if is_on_time else ["G11: jobs were not claimable again on time"]
        return violations(self.board) + late

    def count(self, what: str) -> int:
        """How often the record has this of a job: claimed, rescued, released, ended."""
        return int(self.board.one("SELECT count(*) FROM audit WHERE what = :what", what=what))

    def all_end(self, ids: Sequence[int] | None = None, within: float = 30) -> bool:
        """Wait until none of them is open any more, or none at all; False: some still are."""
        still_open = "SELECT EXISTS (SELECT FROM jobq.jobs WHERE :any OR id = ANY(:ids))"
        binds = {"any": ids is None, "ids": list(ids or [])}
        try:
            until(lambda: not self.board.one(still_open, **binds), "the end of the jobs", within=within)
        except AssertionError:
            return False
        return True


@contextmanager
def arena_on(url: str, folder: Path, *, seed: str = "") -> Iterator[Arena]:
    board = Board(url)
    with board.engine.begin() as connection:
        connection.exec_driver_sql(RECORD)
        keep_journal(connection)
    with fleet_on(url, folder) as fleet:
        yield Arena(board, fleet, seed)
    board.engine.dispose()
