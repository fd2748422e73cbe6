from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import jobq
from sqlalchemy.ext.asyncio import AsyncSession

from shop.mail import Mail
from shop.models import Order, Receipt

app = jobq.App()


@app.lifespan
async def mail() -> AsyncIterator[Mail]:
    """Opened once by each worker; handlers find it in `jobq.current().state`."""
    yield Mail()


@app.handler(
    "receipt.send",
    queue="mail",
    timeout=timedelta(seconds=30),
    retry=jobq.Exponential(base=timedelta(seconds=1)),
)
async def send_receipt(order_id: int) -> None:
    # The receipt and the end of the job commit together: whatever happens, an order gets one receipt and no second.
    async with jobq.current().transaction() as session:
        await write_receipt(session, jobq.current().state, order_id)


async def write_receipt(session: AsyncSession, mail: Mail, order_id: int) -> None:
    """`session`: SQLAlchemy's own, which jobq gives, or SQLModel's, which is one of that kind."""
    order = await session.get_one(Order, order_id)
    session.add(Receipt(order_id=order_id, sent_at=datetime.now(UTC)))
    await session.flush()  # what the database refuses, it refuses before the mail is out
    await mail.send(order.email, f"thank you for ordering {order.quantity} {order.product}")


@app.handler("stock.check")
def check_stock(product: str, left: int) -> jobq.Outcome:
    """A plain function: it runs in a thread."""
    if left >= 5:
        return jobq.Skip(f"{left} {product} left")
    return jobq.Ok(f"asked the supplier for more {product}")
