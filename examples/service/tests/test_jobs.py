from __future__ import annotations

from datetime import timedelta

import httpx
import jobq
import pytest
from jobq.testing import assert_enqueued_async, context, drain_async, enqueued_async, work_once_async
from sqlalchemy.ext.asyncio import AsyncSession

from enrich.apollo import count_credits, look_up, refresh
from enrich.crm import push, report
from enrich.jobs import app
from enrich.tools import Company, Tools
from fake_provider import Provider

pytestmark = pytest.mark.anyio

TEA = "/apollo/companies/tea.example"


async def ask(session: AsyncSession, domain: str, customer: str = "acme") -> None:
    await session.merge(Company(domain=domain, customer=customer))
    await jobq.enqueue_async(session, look_up, domain=domain)


async def test_what_is_found_is_kept_and_goes_to_the_customer_who_asked(
    jobq_async_session: AsyncSession, tools: Tools, provider: Provider
) -> None:
    await ask(jobq_async_session, "tea.example")

    done = await work_once_async(app, jobq_async_session, state=tools)

    assert done is not None
    assert done.job.outcome == "ok: 290 people"
    company = await jobq_async_session.get_one(Company, "tea.example")
    await jobq_async_session.refresh(company)
    assert company.people == 290
    await assert_enqueued_async(jobq_async_session, push, queue="crm.acme", domain="tea.example", people=290)

    await drain_async(app, jobq_async_session, state=tools)
    assert provider.asked == [f"GET {TEA}", "PUT /crm/acme/companies/tea.example"]


async def test_a_company_that_was_looked_up_this_week_is_not_paid_for_again(
    jobq_async_session: AsyncSession, tools: Tools, provider: Provider
) -> None:
    await ask(jobq_async_session, "tea.example")
    await drain_async(app, jobq_async_session, state=tools)
    await ask(jobq_async_session, "tea.example")

    (again,) = await drain_async(app, jobq_async_session, state=tools)

    assert (again.word, again.job.outcome) == ("skip", "skip: fresh")
    assert provider.asked.count(f"GET {TEA}") == 1


async def test_a_company_that_nobody_knows_is_an_answer_and_no_error(
    jobq_async_session: AsyncSession, tools: Tools
) -> None:
    await ask(jobq_async_session, "nobody.invalid")

    (done,) = await drain_async(app, jobq_async_session, state=tools)

    assert (done.job.state, done.job.outcome) == (jobq.State.DONE, "fail: no match")
    assert await enqueued_async(jobq_async_session, push) == []


async def test_a_refused_key_pauses_the_queue_of_that_customer_alone(
    jobq_async_session: AsyncSession, tools: Tools, provider: Provider
) -> None:
    provider.answers["/crm/acme"] = 401
    await ask(jobq_async_session, "tea.example", "acme")
    await ask(jobq_async_session, "coffee.example", "globex")

    done = await drain_async(app, jobq_async_session, state=tools)

    ended = {each.job.queue: (each.word, each.job.failures) for each in done}
    assert ended == {"apollo": ("ok", 0), "crm.acme": ("pause", 0), "crm.globex": ("ok", 0)}
    with context(state=tools):
        assert await report() == "paused: crm.acme"


async def test_an_error_of_the_provider_is_raised_in_a_test_and_retried_by_a_worker(
    jobq_async_session: AsyncSession, tools: Tools, provider: Provider
) -> None:
    provider.answers["/apollo"] = 503
    await ask(jobq_async_session, "tea.example")

    with pytest.raises(httpx.HTTPStatusError, match="503"):
        await drain_async(app, jobq_async_session, state=tools)

    (job,) = await enqueued_async(jobq_async_session, look_up)
    assert (job.state, job.failures) == (jobq.State.PENDING, 1)


async def test_every_company_is_looked_up_again_by_the_schedule(jobq_async_session: AsyncSession, tools: Tools) -> None:
    for domain in ("tea.example", "coffee.example"):
        jobq_async_session.add(Company(domain=domain, customer="acme"))
    await jobq.enqueue_async(jobq_async_session, refresh)

    await work_once_async(app, jobq_async_session, state=tools)

    await assert_enqueued_async(jobq_async_session, look_up, queue="apollo", count=2)


@pytest.mark.parametrize(("left", "paused"), [(1, False), (0, True)])
async def test_nothing_is_looked_up_without_credits(left: int, paused: bool, tools: Tools, provider: Provider) -> None:
    provider.credits = left

    with context(state=tools):
        if not paused:
            assert await count_credits() == "1 left"
            return
        with pytest.raises(jobq.PauseQueue, match="no credits left") as caught:
            await count_credits()
    assert caught.value.duration == timedelta(hours=6)


def test_each_customer_has_a_paced_queue_of_its_own() -> None:
    assert len(app.queues) == 40
    assert all(queue.fifo and queue.throttle and queue.pause_on for queue in app.queues.values())
