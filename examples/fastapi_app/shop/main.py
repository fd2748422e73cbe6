from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import jobq
import sqlalchemy as sa
from fastapi import FastAPI, HTTPException
from sqlmodel import col

from shop.database import Session, engine
from shop.jobs import check_stock, send_receipt
from shop.models import NewOrder, Order, OrderShown, Product, Receipt


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with engine().connect():  # a server that cannot reach its database does not start
        pass
    yield
    await engine().dispose()


app = FastAPI(title="Shop", lifespan=lifespan)


@app.post("/orders", status_code=201)
async def place_order(new: NewOrder, session: Session) -> OrderShown:
    async with session.begin():  # the order, the stock and both jobs: all of them or none
        if await session.get(Product, new.product) is None:
            raise HTTPException(422, f"no product {new.product}")
        order = Order.model_validate(new)
        session.add(order)
        await session.flush()
        await jobq.enqueue_async(session, send_receipt, order_id=jobq.pk(order))
        left = await take_from_stock(session, new)
        await jobq.enqueue_async(session, check_stock, product=new.product, left=left)
        return OrderShown(**order.model_dump())


async def take_from_stock(session: Session, new: NewOrder) -> int:
    """How many are left. Refuses the order when there are too few, which takes back all that was written for it."""
    left: int | None = await session.scalar(
        sa.update(Product)
        .where(col(Product.name) == new.product, col(Product.stock) >= new.quantity)
        .values(stock=Product.stock - new.quantity)
        .returning(col(Product.stock))
    )
    if left is None:
        raise HTTPException(409, f"fewer than {new.quantity} {new.product} in stock")
    return left


@app.get("/orders/{order_id}")
async def show_order(order_id: int, session: Session) -> OrderShown:
    order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(404, f"no order {order_id}")
    receipt = await session.get(Receipt, order_id)
    return OrderShown(**order.model_dump(), receipt_sent_at=receipt.sent_at if receipt else None)
