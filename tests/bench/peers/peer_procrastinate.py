"""procrastinate: psycopg pool connector, async worker, LISTEN/NOTIFY on."""

import json
import os

from common import PROBE, Peer, apace, main, now


class Procrastinate(Peer):
    package = "procrastinate"
    done_sql = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"

    def __init__(self):
        super().__init__()
        self.concurrency = int(os.environ.get("BENCH_CONCURRENCY", "20"))
        self.at_once = f"{self.concurrency} at a time"
        self.settings = (
            f"PsycopgConnector pool {self.concurrency + 5}, worker concurrency "
            f"{self.concurrency}, listen_notify on; bulk: batch_defer_async of 1000"
        )

    def app(self):
        from procrastinate import App, PsycopgConnector

        app = App(connector=PsycopgConnector(conninfo=self.dsn, min_size=1, max_size=self.concurrency + 5))

        @app.task(name="noop", queue="default")
        async def noop(i: int = -1):
            PROBE.hit(i)

        return app, noop

    def setup(self):
        self.fresh_schema()

        async def go():
            app, _ = self.app()
            async with app.open_async():
                await app.schema_manager.apply_schema_async()

        self.run_async(go())

    def enqueue_one(self, n):
        async def go():
            app, noop = self.app()
            async with app.open_async():
                await noop.defer_async(i=-1)
                t = now()
                for _ in range(n):
                    await noop.defer_async(i=-1)
                return now() - t

        return self.run_async(go())

    def enqueue_many(self, n):
        async def go():
            app, noop = self.app()
            async with app.open_async():
                t = now()
                for k in range(0, n, 1000):
                    await noop.batch_defer_async(*({"i": -1} for _ in range(min(1000, n - k))))
                return now() - t

        return self.run_async(go())

    def paced(self, n, interval):
        async def go():
            app, noop = self.app()
            async with app.open_async():
                async for i in apace(n, interval):
                    t = now()
                    await noop.defer_async(i=i)
                    PROBE.sent(i, t, now())

        self.run_async(go())

    def worker(self):
        async def go():
            app, _ = self.app()
            async with app.open_async():
                await app.run_worker_async(concurrency=self.concurrency)

        self.run_async(go())

    def history(self, done, future):
        args = json.dumps({"i": -1})
        with self.connect() as c:
            c.execute("ALTER TABLE procrastinate_jobs DISABLE TRIGGER USER")
            c.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, attempts)"
                " SELECT 'default', 'noop', %s::jsonb, 'succeeded', 1"
                " FROM generate_series(1, %s)",
                (args, done),
            )
            c.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)"
                " SELECT 'default', 'noop', %s::jsonb, now() + interval '1 day' +"
                " g * interval '1 s' FROM generate_series(1, %s) g",
                (args, future),
            )
            c.execute("ALTER TABLE procrastinate_jobs ENABLE TRIGGER USER")
            # three events a finished job, as the triggers would have written them
            c.execute(
                "INSERT INTO procrastinate_events (job_id, type, at) SELECT id, t::"
                "procrastinate_job_event_type, now() FROM procrastinate_jobs,"
                " unnest(ARRAY['deferred','started','succeeded']) t"
                " WHERE status = 'succeeded'"
            )


main(Procrastinate)
