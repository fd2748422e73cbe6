"""What happens in the shop: business and jobs, each time in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq
from jobq_cli.demo import shop
from jobq_cli.demo.tables import Declined, Order, Reindexing

CUSTOMERS = ("ada", "bela", "chen", "dora", "emil", "fatou", "goro", "hana")
POISONED = 1
WISHES = 3  # for each product that is indexed anew: the first makes a job, the others are refused


@dataclass(frozen=True, slots=True)
class Mix:
    """How many jobs of each sort there are; together as many as were asked for."""

    thumbnails: int
    stock: int
    reminders: int
    indexed: int
    reports: int
    receipts: int

    @classmethod
    def of(cls, jobs: int) -> Mix:
        others = (jobs // 4, jobs * 15 // 100, jobs * 8 // 100, jobs * 6 // 100, max(4, jobs // 25))
        return cls(*others, receipts=jobs - sum(others) - POISONED)


def tell(engine: sa.Engine, jobs: int, seed: int) -> Iterator[str]:
    """Enqueue the whole mix; yields after each transaction, with a line where something is worth telling."""
    mix, chance = Mix.of(jobs), Random(seed)
    steps = ["order"] * mix.receipts + ["stock"] * mix.stock + ["index"] * mix.indexed + ["decline"]
    chance.shuffle(steps)
    reports = {(number * len(steps)) // mix.reports: number for number in range(mix.reports)}
    with Session(engine) as session:
        yield _thumbnails(session, mix.thumbnails)
        yield _poison(session)
        reminders = mix.reminders
        for place, step in enumerate(steps):
            if place in reports:
                yield _report(session, reports[place])
            if step == "order":
                yield _order(session, chance, reminded=reminders > 0)
                reminders -= 1
            else:
                yield _other(session, step, place, chance)


def _order(session: Session, chance: Random, *, reminded: bool) -> str:
    """An order, its receipt and, for some, a reminder later: all of them or nothing."""
    order, _ = _ordered(session, chance)
    if reminded:
        later = timedelta(seconds=chance.uniform(2, 6))
        jobq.enqueue(session, shop.send_reminder.options(delay=later), order_id=order.id)
    session.commit()
    return ""


def _ordered(session: Session, chance: Random) -> tuple[Order, int]:
    """An order and the id of the job for its receipt, not committed yet."""
    customer = chance.choice(CUSTOMERS)
    order = Order(customer=customer, cents=chance.randrange(500, 20_000))
    session.add(order)
    session.flush()
    return order, jobq.enqueue(session, shop.send_receipt, order_id=order.id, to=f"{customer}@example.com").id


def _other(session: Session, step: str, place: int, chance: Random) -> str:
    if step == "stock":
        jobq.enqueue(session, shop.fetch_stock, product=chance.randrange(1000))
        session.commit()
        return ""
    return _index(session, place) if step == "index" else _decline(session, chance)


def _index(session: Session, product: int) -> str:
    for _ in range(WISHES):
        job = jobq.enqueue(session, shop.index_product, product=product)
        session.add(Reindexing(product=product, job_id=job.id, created=job.created))
    session.commit()
    return ""


def _decline(session: Session, chance: Random) -> str:
    """The card is declined: order and job go together. That it happened is noted in a transaction of its own."""
    order, job_id = _ordered(session, chance)
    customer = order.customer
    session.rollback()
    session.add(Declined(customer=customer, job_id=job_id))
    session.commit()
    return f"an order of {customer} was rolled back, and job {job_id} with it: it never exists"


def _thumbnails(session: Session, count: int) -> str:
    jobq.enqueue_many(session, shop.make_thumbnail, [{"product": number} for number in range(count)])
    session.commit()
    return f"{count} thumbnails enqueued with one statement"


def _poison(session: Session) -> str:
    job = jobq.enqueue(session, shop.import_feed, path="feeds/broken.csv")
    session.commit()
    return f"job {job.id} is poisonous: it will fail until it is dead"


def _report(session: Session, day: int) -> str:
    jobq.enqueue(session, shop.build_report, day=day)
    session.commit()
    return ""
