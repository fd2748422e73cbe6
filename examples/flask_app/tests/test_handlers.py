"""A handler is called as the function that it is; nothing of jobq has to run."""

from __future__ import annotations

import jobq
import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from shop.database import db
from shop.handlers import FULL, restock, send_receipt
from shop.models import Item


def test_a_receipt_is_sent_once(client: FlaskClient) -> None:
    client.post("/orders", data={"item": "tea", "quantity": "2", "email": "ada@example.org"})

    assert send_receipt(order_id=1) == "to ada@example.org"
    assert send_receipt(order_id=1) == jobq.Skip("sent before")
    assert client.get("/orders/1").json == {
        "id": 1,
        "item": "tea",
        "quantity": 2,
        "receipt": "2 x tea for ada@example.org",
    }


def test_there_is_no_receipt_without_an_order(client: FlaskClient) -> None:
    with pytest.raises(jobq.Permanent, match="there is no order 7"):
        send_receipt(order_id=7)


def test_a_delivery_fills_up_what_is_low(client: FlaskClient) -> None:
    item = db.session.scalars(sa.select(Item).filter_by(name="tea")).one()
    client.post("/orders", data={"item": "tea", "quantity": "9", "email": "ada@example.org"})

    assert restock(item_id=item.id) is None
    assert restock(item_id=item.id) == jobq.Skip("there is enough")
    assert db.session.scalar(sa.select(Item.stock).where(Item.id == item.id)) == FULL
