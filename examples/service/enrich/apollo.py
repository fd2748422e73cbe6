from __future__ import annotations

from datetime import timedelta

import jobq
import sqlalchemy as sa

from enrich.crm import push
from enrich.tools import Company

registry = jobq.Registry(queue="apollo")
WEEK = timedelta(days=7)


@registry.handler("apollo.company", unique=True, keep=WEEK)
async def look_up(domain: str) -> jobq.Outcome:
    async with jobq.current().state.sessions() as session:
        if await jobq.recent_async(session, look_up.args(domain=domain), within=WEEK):
            return jobq.Skip("fresh")  # a request is paid for
    answer = await jobq.current().state.api.get(f"/apollo/companies/{domain}")
    if answer.status_code == 404:
        return jobq.Fail("no match")
    people = answer.raise_for_status().json()["people"]
    async with jobq.current().transaction() as session:  # what was found, the next job, the end of this one: or nothing
        company = await session.get_one(Company, domain)
        company.people = people
        theirs = push.options(queue=f"crm.{company.customer}")
        await jobq.enqueue_async(session, theirs, company.customer, domain, people)
    return jobq.Ok(f"{people} people")


@registry.every(timedelta(hours=24))
@registry.handler("apollo.refresh", queue="default")
async def refresh() -> str:
    async with jobq.current().transaction() as session:
        return f"{await jobq.enqueue_select_async(session, look_up, sa.select(Company.domain))} companies"


@registry.when(lambda t: (t + timedelta(days=1)).day == 1 and (t.hour, t.minute) == (18, 0))  # a month's last evening
@registry.handler("apollo.credits", priority=0)
async def count_credits() -> str:
    left = (await jobq.current().state.api.get("/apollo/credits")).raise_for_status().json()["left"]
    if left == 0:
        raise jobq.PauseQueue(timedelta(hours=6), "no credits left this month")
    return f"{left} left"
