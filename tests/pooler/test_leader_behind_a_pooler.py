"""The leader's office is a row, so it can be held behind a transaction pooler, too."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from bench import Bench, eventually

import jobq
from jobq.tables import finished_jobs, leader, sums

pytestmark = pytest.mark.anyio
EXPIRED = """
    INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                    errors, state, finished_at, expires_at)
    SELECT 1, 'q', 'k', '{}', 1, at, 1, 0, at, '{}', '[]', 'done', at, at
    FROM (SELECT now() - interval '2 hours' AS at) AS old
"""


async def test_the_leader_sums_up_and_cleans_and_gives_up_its_office(
    bench: Bench, app: jobq.App, pooled_url: str
) -> None:
    bench.execute(EXPIRED)

    async with bench.working(app, pooled_url, pooler=True) as worker:
        await eventually(lambda: not bench.execute(sa.select(finished_jobs.c.id)), "the job being deleted")
        assert worker.stats().is_leader

    assert bench.execute(sa.select(sums.c.minutes, sums.c.finished).order_by(sums.c.minutes)) == [(1, 1), (60, 1)]
    assert bench.execute(sa.select(leader.c.worker_id)) == [(None,)]
