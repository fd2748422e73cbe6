"""Limited queues under everything at once: retries, deaths, workers that do not know they are dead, locks, rescuers."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count, pairwise

import pytest
import sqlalchemy as sa
from admin_rows import add_job, add_worker
from store_rows import KINDS, MOMENT

from jobq.model import Claimed, State
from jobq.statements import slots as statements
from jobq.store.claiming import claim_slots
from jobq.store.ending import Ending, Fence, finish_limited
from jobq.store.putting_back import put_back
from jobq.store.rescuing import rescue
from jobq.tables import finished_jobs, jobs, queues, slots, workers

FIFO = ("f0", "f1", "f2")
LIMITS = {"l2": 2, "l3": 3}
PER_QUEUE = 40
SECONDS = 60.0
HISTORY = "CREATE TABLE history (seq bigserial, queue text, id bigint, what text)"
TOO_MANY = "SELECT queue, count(*) FROM jobq.jobs WHERE worker_id IS NOT NULL GROUP BY queue"
NOTE = sa.text("INSERT INTO history (queue, id, what) VALUES (:queue, :id, :what)")


class Storm:
    """A fleet in threads, each with its own source of chance; every claim and every end is written down with it."""

    def __init__(self, engine: sa.Engine, seed: int) -> None:
        self.engine = engine
        self.seed = seed
        self.over = threading.Event()
        self.ids = count(1)
        self.broken: Counter[str] = Counter()

    def prepare(self) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql(HISTORY)
            for name in FIFO:
                connection.execute(sa.insert(queues).values(name=name, fifo=True))
            for name, limit in LIMITS.items():
                connection.execute(sa.insert(queues).values(name=name, fifo=False, concurrency=limit))
            connection.execute(statements.make_slots())

    def run(self) -> None:
        self.prepare()
        parts: list[Callable[[random.Random], None]] = [
            self.enqueue, *[self.work] * 4, self.rescue, self.rescue, self.operate, self.watch, self.end,
        ]  # fmt: skip
        with ThreadPoolExecutor(len(parts)) as pool:
            sources = [random.Random(self.seed * 100 + n) for n in range(len(parts))]
            started = [pool.submit(self._until_over, part, source) for part, source in zip(parts, sources, strict=True)]
            for each in started:
                each.result()

    def _until_over(self, part: Callable[[random.Random], None], chance: random.Random) -> None:
        try:
            part(chance)
        except BaseException:
            self.over.set()
            raise

    def enqueue(self, chance: random.Random) -> None:
        """One after the other, so that ids are in the order of the queue."""
        for _ in range(PER_QUEUE):
            for queue in (*FIFO, *LIMITS):
                with self.engine.begin() as connection:
                    add_job(connection, queue=queue, max_attempts=999)

    def work(self, chance: random.Random) -> None:
        worker_id = self.join()
        while not self.over.is_set():
            in_order = chance.random() < 0.6
            names = list(FIFO if in_order else LIMITS)
            chance.shuffle(names)
            with self.engine.begin() as connection:
                claim = claim_slots(connection, names, worker_id=worker_id, kinds=KINDS, most=3, in_order=in_order)
                for job in claim.jobs:
                    connection.execute(NOTE, {"queue": job.queue, "id": job.id, "what": "claim"})
            died = False
            for job in claim.jobs:
                if chance.random() < 0.1:
                    self.die(worker_id)
                    died = True  # and does not know it yet
                self.finish(job, chance)
            if died:
                worker_id = self.join()

    def join(self) -> int:
        worker_id = next(self.ids)
        with self.engine.begin() as connection:
            add_worker(connection, worker_id)
        return worker_id

    def die(self, worker_id: int) -> None:
        with self.engine.begin() as connection:
            gone = {"lease": MOMENT, "lease_until": sa.func.now() - MOMENT}
            connection.execute(sa.update(workers).where(workers.c.id == worker_id).values(gone))

    def finish(self, job: Claimed, chance: random.Random) -> None:
        fence, wait = Fence(job.id, job.attempt, job.worker_id), timedelta(milliseconds=chance.choice([0, 0, 5]))
        with self.engine.begin() as connection:
            if chance.random() < 0.25:
                put_back(connection, Ending(fence, State.PENDING, error="{}", slot_wait=wait))
            elif finish_limited(connection, Ending(fence, State.DONE, keep=timedelta(days=1), slot_wait=wait)):
                connection.execute(NOTE, {"queue": job.queue, "id": job.id, "what": "done"})

    def rescue(self, chance: random.Random) -> None:
        while not self.over.wait(0.01):
            with self.engine.begin() as connection:
                rescue(connection, connected_for=timedelta(days=9), look_everywhere=True, channel=None)

    def operate(self, chance: random.Random) -> None:
        """An operator's transactions lock the heads of queues for a moment."""
        while not self.over.wait(0.004):
            head = sa.select(jobs.c.id).where(jobs.c.queue == chance.choice(FIFO), jobs.c.worker_id.is_(None))
            head = head.order_by(jobs.c.priority, jobs.c.run_at, jobs.c.id).limit(1)
            with self.engine.begin() as connection:
                connection.execute(head.with_for_update(skip_locked=True))
                self.over.wait(0.004)

    def watch(self, chance: random.Random) -> None:
        while not self.over.wait(0.001):
            with self.engine.begin() as connection:
                for queue, number in connection.exec_driver_sql(TOO_MANY):
                    if number > LIMITS.get(queue, 1):
                        self.broken[queue] += 1

    def end(self, chance: random.Random) -> None:
        ended = sa.select(sa.func.count()).select_from(finished_jobs)
        for _ in range(int(SECONDS / 0.05)):
            if self.over.wait(0.05):
                return
            with self.engine.begin() as connection:
                if connection.scalar(ended) == PER_QUEUE * (len(FIFO) + len(LIMITS)):
                    break
        self.over.set()

    def history(self, queue: str, what: str) -> list[int]:
        rows = sa.text("SELECT id FROM history WHERE queue = :queue AND what = :what ORDER BY seq")
        with self.engine.begin() as connection:
            return list(connection.scalars(rows, {"queue": queue, "what": what}))


@pytest.mark.parametrize("seed", [1, 2])
def test_order_and_limits_hold_whatever_happens(engine: sa.Engine, seed: int) -> None:
    storm = Storm(engine, seed)

    storm.run()

    assert storm.broken == {}
    for queue in FIFO:
        claims, done = storm.history(queue, "claim"), storm.history(queue, "done")
        assert [pair for pair in pairwise(claims) if pair[0] > pair[1]] == []
        assert done == sorted(set(done))
        assert len(done) == PER_QUEUE
        assert len(claims) > PER_QUEUE
    for queue in LIMITS:
        assert len(storm.history(queue, "done")) == len(set(storm.history(queue, "done"))) == PER_QUEUE
    with engine.begin() as connection:
        assert connection.scalar(sa.select(sa.func.count(slots.c.worker_id))) == 0
