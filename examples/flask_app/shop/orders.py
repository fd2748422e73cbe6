"""Taking orders, and looking at them."""

from __future__ import annotations

from typing import Any

import jobq
import sqlalchemy as sa
from flask import Blueprint, abort, request
from sqlalchemy.exc import IntegrityError

from shop.database import db
from shop.handlers import LOW, restock, send_receipt
from shop.models import Item, Order

orders = Blueprint("orders", __name__, url_prefix="/orders")


@orders.post("")
def take() -> tuple[dict[str, Any], int]:
    """The order, what it takes from the stock, and its jobs: all of it is committed, or nothing."""
    item = db.session.scalar(sa.select(Item).filter_by(name=request.form["item"]))
    quantity = request.form.get("quantity", default=0, type=int)
    if item is None or quantity < 1:
        abort(400, "the shop has no such item, or not in this quantity")
    order = Order(item=item, quantity=quantity, email=request.form["email"])
    db.session.add(order)
    jobq.enqueue(db.session, send_receipt, order_id=jobq.pk(order))
    try:
        item.stock = Item.stock - quantity
        db.session.flush()
    except IntegrityError:  # items_stock_check: the order and its job are gone with this transaction
        db.session.rollback()
        abort(409, "not that many left")
    if item.stock < LOW:
        jobq.enqueue(db.session, restock, item_id=item.id)
    db.session.commit()
    return shown(order), 201


@orders.get("/<int:order_id>")
def look(order_id: int) -> dict[str, Any]:
    return shown(db.get_or_404(Order, order_id))


def shown(order: Order) -> dict[str, Any]:
    return {
        "id": order.id,
        "item": order.item.name,
        "quantity": order.quantity,
        "receipt": order.receipt.text if order.receipt else None,
    }
