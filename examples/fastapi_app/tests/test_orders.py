from __future__ import annotations

import httpx
import jobq
import pytest
from jobq.tables import all_jobs
from sqlmodel import func, select
from sqlmodel.ext.asyncio.session import AsyncSession

from shop.jobs import check_stock, send_receipt
from shop.models import Order, Product

pytestmark = pytest.mark.anyio

TEA = {"email": "ada@example.org", "product": "tea", "quantity": 2}


async def test_an_order_makes_the_job_that_sends_its_receipt(client: httpx.AsyncClient, session: AsyncSession) -> None:
    answer = await client.post("/orders", json=TEA)

    assert answer.status_code == 201
    (job,) = await jobq.jobs_async(session, all_jobs.c.kind == send_receipt.kind)
    assert job.state is jobq.State.PENDING
    assert job.args == {"order_id": answer.json()["id"]}


async def test_an_order_takes_from_the_stock_and_has_it_checked(
    client: httpx.AsyncClient, session: AsyncSession
) -> None:
    await client.post("/orders", json=TEA)

    (job,) = await jobq.jobs_async(session, all_jobs.c.kind == check_stock.kind)
    assert job.args == {"product": "tea", "left": 98}
    assert await session.scalar(select(Product.stock).where(Product.name == "tea")) == 98


@pytest.mark.parametrize(
    ("wish", "status"), [({"quantity": 101}, 409), ({"product": "cake"}, 422), ({"quantity": 0}, 422)]
)
async def test_an_order_that_is_refused_leaves_neither_order_nor_job(
    wish: dict[str, object], status: int, client: httpx.AsyncClient, session: AsyncSession
) -> None:
    answer = await client.post("/orders", json=TEA | wish)

    assert answer.status_code == status
    assert await session.scalar(select(func.count()).select_from(Order)) == 0
    assert await session.scalar(select(func.count()).select_from(all_jobs)) == 0


async def test_an_order_is_shown_without_a_receipt_until_the_job_has_run(client: httpx.AsyncClient) -> None:
    placed = (await client.post("/orders", json=TEA)).json()

    shown = await client.get(f"/orders/{placed['id']}")

    assert shown.json() == {**TEA, "id": placed["id"], "receipt_sent_at": None}
    assert (await client.get("/orders/999999999")).status_code == 404


def test_a_job_cannot_be_made_with_the_wrong_arguments() -> None:
    with pytest.raises(jobq.ArgsError, match="order_id"):
        send_receipt.args(order_id="seven")  # type: ignore[arg-type]
