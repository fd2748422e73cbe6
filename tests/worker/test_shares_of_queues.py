"""Shares of a real worker: by weight while all queues are full, and nobody starves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa
from bench import Bench, Effects, eventually

import jobq
from jobq.tables import jobs

pytestmark = pytest.mark.anyio
WEIGHTS = {"default": 5, "email": 3, "images": 2}


def fill(bench: Bench, **numbers: int) -> None:
    for queue, number in numbers.items():
        rows = sa.select(sa.literal("k"), sa.literal(queue)).select_from(sa.func.generate_series(1, number))
        bench.execute(sa.insert(jobs).from_select(["kind", "queue"], rows, include_defaults=False))
    bench.execute("ANALYZE jobq.jobs")


def counting(app: jobq.App) -> Effects:
    seen = Effects()
    for queue, weight in WEIGHTS.items():
        app.queue(queue, weight=weight)

    @app.handler("k")
    async def handler() -> None:
        seen.add(jobq.current().job.queue)

    return seen


async def test_f22_over_ten_thousand_jobs_with_all_queues_full_each_has_its_share(bench: Bench, app: jobq.App) -> None:
    seen = counting(app)
    fill(bench, default=6500, email=4000, images=3000)

    async with bench.working(app, concurrency=50):
        await eventually(lambda: len(seen) >= 10_000, "10 000 jobs", within=60)

    taken = Counter(seen.seen[:10_000])
    for queue, weight in WEIGHTS.items():
        assert taken[queue] / 10_000 == pytest.approx(weight / 10, abs=0.05), taken


@pytest.mark.parametrize("concurrency", [1, 20])
async def test_f22_a_flood_in_one_queue_starves_no_other(bench: Bench, app: jobq.App, concurrency: int) -> None:
    seen = counting(app)
    fill(bench, images=10_000, email=50)

    async with bench.working(app, concurrency=concurrency):
        await eventually(lambda: seen.seen.count("email") == 50, "the email jobs", within=30)
        images = seen.seen[: last_of(seen.seen, "email")].count("images")

    assert images < 400


def last_of(seen: list[Any], queue: str) -> int:
    return max(place for place, each in enumerate(seen) if each == queue)
