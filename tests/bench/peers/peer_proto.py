"""A sketch of a worker that pays for the features: anyio, a time limit and a context per job,
fenced batched completion, a bounded look-ahead, notify with a poll as the floor.

It shows how much of the limit (peer_raw.py) survives them. Not a product: no retries, no
heartbeat, no reaper, one queue. BENCH_FENCE=any (default): one UPDATE ... id = ANY per attempt number
in the batch; BENCH_FENCE=join: UPDATE ... FROM unnest(ids, attempts). BENCH_TIMELIMIT=scope (default): anyio.fail_after
per job; =watch: one long-lived scope per slot and a watchdog; =off.
"""

import contextvars
import logging
import os
from collections import deque
from dataclasses import dataclass
from time import monotonic

from common import PROBE, main
from peer_raw import CLAIM, Raw

FINISH_ANY = """
UPDATE jobs SET state = 'done', finished_at = now()
WHERE id = ANY(%s::bigint[]) AND attempts = %s AND state = 'running' AND locked_by = %s
"""
FINISH_JOIN = """
UPDATE jobs SET state = 'done', finished_at = now()
FROM unnest(%s::bigint[], %s::int[]) AS f (id, attempts)
WHERE jobs.id = f.id AND jobs.attempts = f.attempts AND jobs.state = 'running' AND jobs.locked_by = %s
"""
log = logging.getLogger("proto")
current = contextvars.ContextVar("current")


@dataclass(slots=True)
class Job:
    id: int
    type: str
    payload: dict
    attempts: int


async def noop(job):
    PROBE.hit(job.payload["i"])


HANDLERS = {"noop": noop}


class Proto(Raw):
    def __init__(self):
        super().__init__()
        self.slots = int(os.environ.get("BENCH_CONCURRENCY", "100"))
        self.batch = int(os.environ.get("BENCH_BATCH", "500"))
        self.limit = os.environ.get("BENCH_TIMELIMIT", "scope")
        self.fence = os.environ.get("BENCH_FENCE", "any")
        self.at_once = f"{self.slots} at a time"
        self.settings = (
            f"seed's table, {self.slots} slots, look-ahead {self.batch}, time limit: "
            f"{self.limit}, a context per job, fenced completion ({self.fence}); bulk: COPY"
        )

    def worker(self):
        import anyio

        uv = os.environ.get("BENCH_UVLOOP", "1") == "1"
        anyio.run(self.main, backend_options={"use_uvloop": uv})

    async def main(self):
        import anyio
        import psycopg

        async def connect():
            return await psycopg.AsyncConnection.connect(self.dsn, autocommit=True, prepare_threshold=0)

        claimer, finisher, listener = await connect(), await connect(), await connect()
        me = f"w{os.getpid()}"
        ready: deque[Job] = deque()
        done: list[Job] = []
        running = 0
        overdue: dict[anyio.CancelScope, float] = {}
        work, room, finished, notified = (anyio.Event() for _ in range(4))

        async def listen():
            nonlocal notified
            await listener.execute("LISTEN jobs")
            async for _ in listener.notifies():
                notified.set()

        async def claim():
            nonlocal work, room, notified
            cur = claimer.cursor(binary=True)
            while True:
                want = self.slots + self.batch - len(ready) - running
                if want < self.batch // 2:
                    room = anyio.Event()
                    await room.wait()
                    continue
                notified = anyio.Event()
                asked = min(want, self.batch)
                await cur.execute(CLAIM, (me, asked))
                rows = await cur.fetchall()
                for r in rows:
                    ready.append(Job(*r))
                if rows:
                    work.set()
                    work = anyio.Event()
                if len(rows) < asked:
                    with anyio.move_on_after(1.0):
                        await notified.wait()

        async def run():
            # one scope for as long as nothing is overdue: a watchdog cancels it
            while True:
                with anyio.CancelScope() as scope:
                    await run_slot(scope)

        async def run_slot(scope):
            nonlocal running
            streak = 0
            while True:
                if not ready:
                    await work.wait()
                    streak = 0
                    continue
                job = ready.popleft()
                running += 1
                current.set(job)
                try:
                    handler = HANDLERS[job.type]
                    if self.limit == "scope":
                        with anyio.fail_after(60):
                            await handler(job)
                    elif self.limit == "watch":
                        overdue[scope] = monotonic() + 60
                        await handler(job)
                        del overdue[scope]
                    else:
                        await handler(job)
                finally:
                    running -= 1
                log.debug("job %s done", job.id)
                done.append(job)
                if len(done) == 1:
                    finished.set()
                if len(ready) < self.batch // 2:
                    room.set()
                streak += 1
                if streak >= 20:  # a handler that never waits must not hold the loop
                    streak = 0
                    await anyio.lowlevel.checkpoint()

        async def watchdog():
            while True:
                await anyio.sleep(0.1)
                t = monotonic()
                for scope, end in list(overdue.items()):
                    if end < t:
                        scope.cancel()

        async def finish():
            nonlocal finished, done
            cur = finisher.cursor(binary=True)
            while True:
                if not done:
                    finished = anyio.Event()
                    await finished.wait()
                batch, done = done, []
                if self.fence == "join":
                    await cur.execute(FINISH_JOIN, ([j.id for j in batch], [j.attempts for j in batch], me))
                    kept = cur.rowcount
                else:
                    kept, groups = 0, {}
                    for j in batch:
                        groups.setdefault(j.attempts, []).append(j.id)
                    for attempts, ids in groups.items():
                        await cur.execute(FINISH_ANY, (ids, attempts, me))
                        kept += cur.rowcount
                if kept != len(batch):
                    log.warning("%s completions came too late", len(batch) - kept)

        async with anyio.create_task_group() as tg:
            tg.start_soon(listen)
            tg.start_soon(claim)
            tg.start_soon(finish)
            if self.limit == "watch":
                tg.start_soon(watchdog)
            for _ in range(self.slots):
                tg.start_soon(run)


main(Proto)
