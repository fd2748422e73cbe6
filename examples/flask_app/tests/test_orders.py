from __future__ import annotations

import jobq
import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from shop.database import db
from shop.models import Item, Order

TEA = {"item": "tea", "quantity": "2", "email": "ada@example.org"}


def stock(name: str) -> int | None:
    return db.session.scalar(sa.select(Item.stock).where(Item.name == name))


def test_an_order_is_taken_with_its_job(client: FlaskClient) -> None:
    answer = client.post("/orders", data=TEA)

    assert (answer.status_code, answer.json) == (201, {"id": 1, "item": "tea", "quantity": 2, "receipt": None})
    (job,) = jobq.jobs(db.session)
    assert (job.kind, job.args, job.state) == ("receipt.send", {"order_id": 1}, jobq.State.PENDING)
    assert str(job.callsite).startswith("shop/orders.py:")
    assert stock("tea") == 8


def test_what_the_shop_does_not_have_leaves_neither_order_nor_job(client: FlaskClient) -> None:
    assert client.post("/orders", data={**TEA, "quantity": "11"}).status_code == 409

    assert db.session.scalar(sa.select(sa.func.count()).select_from(Order)) == 0
    assert jobq.jobs(db.session) == []
    assert stock("tea") == 10


@pytest.mark.parametrize("wrong", [{"item": "gold"}, {"quantity": "0"}, {"quantity": "two"}])
def test_an_order_that_makes_no_sense_is_refused(client: FlaskClient, wrong: dict[str, str]) -> None:
    assert client.post("/orders", data={**TEA, **wrong}).status_code == 400
    assert jobq.jobs(db.session) == []


def test_many_orders_cause_one_delivery(client: FlaskClient) -> None:
    for quantity in ("8", "1", "1"):
        client.post("/orders", data={**TEA, "quantity": quantity})

    kinds = [job.kind for job in jobq.jobs(db.session)]
    assert (kinds.count("receipt.send"), kinds.count("item.restock")) == (3, 1)


def test_nobody_sees_an_order_that_is_not_there(client: FlaskClient) -> None:
    assert client.get("/orders/1").status_code == 404
