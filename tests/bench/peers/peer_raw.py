"""The physical limit: the seed's table, psycopg 3, and nothing that a queue needs besides.

A batched claim (UPDATE ... FOR UPDATE SKIP LOCKED LIMIT n RETURNING) on one connection, the
no-op handlers in between, a batched completion (id = ANY) on another, the next claim
running while the last batch is handled. No retries, leases, fairness or history.
"""

import contextlib
import json
import os

from common import PROBE, Peer, apace, main, now

TABLE = """
CREATE TABLE jobs (
  id BIGSERIAL PRIMARY KEY, queue TEXT NOT NULL DEFAULT 'default', type TEXT NOT NULL,
  payload JSONB NOT NULL, state TEXT NOT NULL DEFAULT 'pending', attempts INT NOT NULL DEFAULT 0,
  max_attempts INT NOT NULL DEFAULT 5, run_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  locked_at TIMESTAMPTZ, locked_by TEXT, last_error TEXT, unique_key TEXT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(), finished_at TIMESTAMPTZ);
CREATE INDEX jobs_claim ON jobs (queue, state, run_at) WHERE state = 'pending';
CREATE UNIQUE INDEX jobs_unique_key ON jobs (unique_key)
  WHERE unique_key IS NOT NULL AND state <> 'done';
"""
CLAIM = """
UPDATE jobs SET state = 'running', locked_at = now(), locked_by = %s, attempts = attempts + 1
WHERE id IN (SELECT id FROM jobs WHERE queue = 'default' AND state = 'pending' AND run_at <= now()
             ORDER BY run_at LIMIT %s FOR UPDATE SKIP LOCKED)
RETURNING id, type, payload, attempts
"""
FINISH = "UPDATE jobs SET state = 'done', finished_at = now() WHERE id = ANY(%s) AND locked_by = %s"


class Raw(Peer):
    package = "psycopg"
    done_sql = "SELECT count(*) FROM jobs WHERE state = 'done'"

    def __init__(self):
        super().__init__()
        self.batch = int(os.environ.get("BENCH_BATCH", "500"))
        self.at_once = f"batches of {self.batch}"
        self.settings = (
            f"seed's table, batch {self.batch}, claim and completion connections, the next "
            "claim in flight while a batch runs, a task per job; bulk: COPY"
        )

    def setup(self):
        self.fresh_schema()
        with self.connect() as c:
            c.execute(TABLE)

    def enqueue_one(self, n):
        with self.connect() as c:
            sql = "INSERT INTO jobs (type, payload) VALUES ('noop', %s)"
            t = now()
            for _ in range(n):
                c.execute(sql, (json.dumps({"i": -1}),))
            return now() - t

    def enqueue_many(self, n):
        with self.connect() as c, c.cursor() as cur:
            t = now()
            with cur.copy("COPY jobs (type, payload) FROM STDIN") as copy:
                for _ in range(n):
                    copy.write_row(("noop", json.dumps({"i": -1})))
            return now() - t

    def paced(self, n, interval):
        async def go():
            import psycopg

            c = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
            async for i in apace(n, interval):
                t = now()
                await c.execute(
                    "WITH j AS (INSERT INTO jobs (type, payload) VALUES ('noop', %s)"
                    " RETURNING id) SELECT pg_notify('jobs', '') FROM j",
                    (json.dumps({"i": i}),),
                )
                PROBE.sent(i, t, now())

        self.run_async(go())

    def worker(self):
        async def go():
            import asyncio

            import psycopg

            async def connect():
                return await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)

            claimer, finisher, listener = await connect(), await connect(), await connect()
            claimer.prepare_threshold = finisher.prepare_threshold = 0
            me = f"w{os.getpid()}"
            wake = asyncio.Event()

            async def listen():
                await listener.execute("LISTEN jobs")
                async for _ in listener.notifies():
                    wake.set()

            async def claim():
                cur = await claimer.execute(CLAIM, (me, self.batch), binary=True)
                return await cur.fetchall()

            async def handle(payload):
                PROBE.hit(payload["i"])

            async def finish(ids):
                await finisher.execute(FINISH, (ids, me))

            loop = asyncio.get_running_loop()
            ear = loop.create_task(listen())
            ahead = loop.create_task(claim())
            written = None
            while True:
                rows = await ahead
                if not rows:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(wake.wait(), 1.0)
                    wake.clear()
                    ahead = loop.create_task(claim())
                    continue
                ahead = loop.create_task(claim())
                if len(rows) == 1:
                    await handle(rows[0][2])
                else:
                    await asyncio.gather(*[loop.create_task(handle(r[2])) for r in rows])
                if written:
                    await written
                written = loop.create_task(finish([r[0] for r in rows]))
            del ear

        self.run_async(go())

    def history(self, done, future):
        with self.connect() as c:
            c.execute(
                "INSERT INTO jobs (type, payload, state, attempts, finished_at) SELECT 'noop',"
                " '{\"i\": -1}', 'done', 1, now() FROM generate_series(1, %s)",
                (done,),
            )
            c.execute(
                "INSERT INTO jobs (type, payload, run_at) SELECT 'noop', '{\"i\": -1}', now() +"
                " interval '1 day' + g * interval '1 s' FROM generate_series(1, %s) g",
                (future,),
            )


if __name__ == "__main__":
    main(Raw)
