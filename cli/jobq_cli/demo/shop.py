"""The demo's application: what a shop does in the background. `jobq run jobq_cli.demo.shop:app` works it off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random

import jobq
from jobq_cli.demo.pace import SEED, Pace
from jobq_cli.demo.tables import Receipt, Thumbnail

app = jobq.App()
app.queue("email", weight=4)
app.queue("images", weight=3)
app.queue("stock", weight=2)
app.queue("default", weight=2)

SOON = jobq.Exponential(base=timedelta(seconds=0.4), cap=timedelta(seconds=2))


@app.lifespan
async def open_shop() -> AsyncIterator[Pace]:
    """What handlers share; a worker that the demo has started ends when the demo is gone, however that ended."""
    if SEED in os.environ:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, _close_shop, loop)
    yield Pace.from_environment()


@app.handler("receipt.send", queue="email", retry=SOON)
async def send_receipt(order_id: int, to: str) -> str:
    """Exactly once: the receipt is written, and the job is done, in one transaction."""
    await asyncio.sleep(_seconds(0.05, 0.3))
    async with jobq.current().transaction() as session:
        session.add(Receipt(order_id=order_id, sent_to=to))
    return f"to {to}"


@app.handler("reminder.send", queue="email", priority=0, retry=SOON)
async def send_reminder(order_id: int) -> str:
    """Scheduled a few seconds ahead."""
    await asyncio.sleep(_seconds(0.02, 0.1))
    return f"order {order_id} is on its way"


@app.handler("thumbnail.make", queue="images", retry=SOON)
def make_thumbnail(product: int, width: int = 32) -> str:
    """A plain function: it runs in a thread. A picture of noise, made smaller by a row's every eighth pixel."""
    picture = Random(product).randbytes(width * width * 64)
    time.sleep(_seconds(0.1, 0.5))
    with jobq.current().transaction() as session:
        session.add(Thumbnail(product=product, pixels=picture[::64]))
    return f"{width}x{width}"


@app.handler("stock.fetch", queue="stock", max_attempts=8, retry=SOON)
async def fetch_stock(product: int) -> jobq.Outcome:
    """Asks a service that fails now and then: retried after a moment."""
    await asyncio.sleep(_seconds(0.1, 0.4))
    job, pace = jobq.current().job, _pace()
    if job.failures < pace.failures(job.id):
        raise ConnectionError("the supplier does not answer")
    return jobq.Skip("fresh") if pace.is_fresh(job.id) else jobq.Ok(f"{product % 17} left")


@app.handler("search.index", unique=("product",), retry=SOON)
async def index_product(product: int) -> None:
    """At most one open job a product: more wishes while it waits or runs are refused."""
    await asyncio.sleep(_seconds(0.2, 0.6))


@app.handler("report.build", retry=SOON)
async def build_report(day: int) -> str:
    """Takes long, so that whoever is killed holds one."""
    await asyncio.sleep(_seconds(1.5, 2.5))
    return f"day {day}"


@app.handler("feed.import", queue="stock", max_attempts=3, retry=SOON)
async def import_feed(path: str) -> None:
    """A poisonous job: it fails every time and ends dead."""
    await asyncio.sleep(_seconds(0.05, 0.1))
    raise ValueError(f"{path}: line 7 is not a product")


def _pace() -> Pace:
    pace: Pace = jobq.current().state
    return pace


def _seconds(least: float, most: float) -> float:
    return _pace().seconds(jobq.current().job.id, least, most)


def _close_shop(loop: asyncio.AbstractEventLoop) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        loop.remove_reader(sys.stdin)
        os.kill(os.getpid(), signal.SIGTERM)
