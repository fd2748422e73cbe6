"""The reader's handlers, of which the README shows the signatures alone."""

from __future__ import annotations

import jobq

from .models import Order

app = jobq.App()


@app.handler("receipt.send", queue="email", max_attempts=8)
async def send_receipt(order_id: int) -> None:
    async with jobq.current().transaction() as session:
        order = await session.get_one(Order, order_id)
        order.receipt = f"{order.what} for order {order_id}"
