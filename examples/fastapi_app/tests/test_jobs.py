from __future__ import annotations

import jobq
import pytest
from sqlmodel.ext.asyncio.session import AsyncSession

from shop.jobs import check_stock, write_receipt
from shop.mail import Mail, TryLaterError
from shop.models import Order, Receipt

ADA = "ada@example.org"


@pytest.mark.parametrize(
    ("left", "outcome"), [(5, jobq.Skip("5 tea left")), (4, jobq.Ok("asked the supplier for more tea"))]
)
def test_the_supplier_is_asked_when_little_is_left(left: int, outcome: jobq.Outcome) -> None:
    assert check_stock("tea", left) == outcome  # a handler is called as the function that it is


@pytest.mark.anyio
async def test_a_receipt_goes_out_once_the_mail_service_takes_it(session: AsyncSession) -> None:
    order = Order(email=ADA, product="tea", quantity=2)
    session.add(order)
    await session.flush()
    order_id = jobq.pk(order)
    mail = Mail()

    with pytest.raises(TryLaterError):
        async with session.begin_nested():
            await write_receipt(session, mail, order_id)
    assert await session.get(Receipt, order_id) is None
    async with session.begin_nested():
        await write_receipt(session, mail, order_id)

    assert await session.get(Receipt, order_id) is not None
