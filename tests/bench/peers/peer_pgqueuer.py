"""pgqueuer: asyncpg driver, batches; its own benchmark runs five managers in one process."""

import os

from common import PROBE, Peer, apace, main, now


class PgQueuerPeer(Peer):
    package = "pgqueuer"
    done_sql = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"

    def __init__(self):
        super().__init__()
        self.batch = int(os.environ.get("BENCH_BATCH", "100"))
        self.managers = int(os.environ.get("BENCH_MANAGERS", "2"))
        self.at_once = f"{self.managers} managers, batches of {self.batch}"
        self.settings = (
            f"asyncpg, batch_size {self.batch}, {self.managers} managers (one "
            "connection each) per process, durability 'durable', autovacuum settings "
            "of `pgq autovac`; bulk: Queries.enqueue of 1000"
        )

    async def queries(self):
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        return Queries(AsyncpgDriver(await asyncpg.connect(self.dsn)))

    def setup(self):
        self.fresh_schema()

        async def go():
            q = await self.queries()
            await q.install()
            if hasattr(q, "optimize_autovacuum"):
                await q.optimize_autovacuum()

        self.run_async(go())

    def enqueue_one(self, n):
        async def go():
            q = await self.queries()
            await q.enqueue("noop", b"-1")
            t = now()
            for _ in range(n):
                await q.enqueue("noop", b"-1")
            return now() - t

        return self.run_async(go())

    def enqueue_many(self, n):
        async def go():
            q = await self.queries()
            t = now()
            for k in range(0, n, 1000):
                m = min(1000, n - k)
                await q.enqueue(["noop"] * m, [b"-1"] * m, [0] * m)
            return now() - t

        return self.run_async(go())

    def paced(self, n, interval):
        async def go():
            q = await self.queries()
            async for i in apace(n, interval):
                t = now()
                await q.enqueue("noop", str(i).encode())
                PROBE.sent(i, t, now())

        self.run_async(go())

    def worker(self):
        async def go():
            import asyncio
            import signal

            from pgqueuer import PgQueuer

            managers = []
            for _ in range(self.managers):
                q = await self.queries()
                m = PgQueuer(q.driver, queries=q)

                @m.entrypoint("noop")
                async def noop(job):
                    PROBE.hit(int(job.payload))

                managers.append(m)

            def stop():
                for m in managers:
                    m.shutdown.set()

            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
            await asyncio.gather(*(m.run(batch_size=self.batch) for m in managers))

        self.run_async(go())

    def history(self, done, future):
        with self.connect() as c:
            c.execute(
                "INSERT INTO pgqueuer_log (job_id, status, priority, entrypoint, aggregated)"
                " SELECT g, 'successful', 0, 'noop', true FROM generate_series(1, %s) g",
                (done,),
            )
            c.execute(
                "INSERT INTO pgqueuer (priority, entrypoint, payload, status, execute_after)"
                " SELECT 0, 'noop', '-1'::bytea, 'queued', now() + interval '1 day' +"
                " g * interval '1 s' FROM generate_series(1, %s) g",
                (future,),
            )


main(PgQueuerPeer)
