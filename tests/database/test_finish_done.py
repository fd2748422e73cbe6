"""Jobs that ended well are found where their claim put them; those that have moved since, by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import add_job, add_worker
from store_rows import ME, OTHER, add_running, claim_from, row, running_on, stale

from jobq.model import Claimed
from jobq.statements.claim import place_of
from jobq.store.ending import Fence, finish_done
from jobq.tables import jobs

NOWHERE = "(0,0)"
DAY = timedelta(days=1)


def place(connection: sa.Connection, id_: int) -> str:
    text = sa.cast(place_of("jobs"), sa.Text)
    return str(connection.scalars(sa.select(text).select_from(jobs).where(jobs.c.id == id_)).one())


def end(connection: sa.Connection, fences: Sequence[Fence], places: Sequence[str], *, me: int = ME) -> set[int] | None:
    """With the id as the outcome of each."""
    ids, attempts = [fence.id for fence in fences], [fence.attempt for fence in fences]
    return finish_done(connection, ids, attempts, places, [f"ok: {id_}" for id_ in ids], worker_id=me, keep=DAY)


def outcomes(connection: sa.Connection, fences: Sequence[Fence]) -> list[tuple[str, str | None]]:
    rows = [row(connection, fence.id) for fence in fences]
    return [(each["state"], each["outcome"]) for each in rows]


def claimed(connection: sa.Connection, number: int) -> list[Claimed]:
    add_worker(connection, ME)
    for _ in range(number):
        add_job(connection)
    return sorted(claim_from(connection).jobs)


def test_a_claim_says_where_its_jobs_are_and_they_end_there(connection: sa.Connection) -> None:
    taken = claimed(connection, 300)

    assert [job.place for job in taken[::50]] == [place(connection, job.id) for job in taken[::50]]
    fences = [Fence(job.id, job.attempt, ME) for job in taken]
    assert end(connection, fences, [job.place for job in taken]) is None
    assert outcomes(connection, fences) == [("done", f"ok: {job.id}") for job in taken]


def test_jobs_that_were_written_since_their_claim_end_with_the_others(connection: sa.Connection) -> None:
    taken = claimed(connection, 9)
    fences = [Fence(job.id, job.attempt, ME) for job in taken]
    moved = [job.id for job in taken[::2]]
    connection.execute(sa.update(jobs).where(jobs.c.id.in_(moved)).values(meta={"n": 1}))

    mine = end(connection, fences, [job.place for job in taken])

    assert mine == {job.id for job in taken}
    assert outcomes(connection, fences) == [("done", f"ok: {job.id}") for job in taken]


def test_a_job_that_came_to_the_place_of_another_is_not_ended_for_it(connection: sa.Connection) -> None:
    mine, other = add_running(connection), add_running(connection)

    assert end(connection, [mine], [place(connection, other.id)]) == {mine.id}
    assert running_on(connection, ME) == [other.id]


def test_jobs_that_changed_places_keep_their_own_outcomes(connection: sa.Connection) -> None:
    fences = [add_running(connection) for _ in range(3)]
    places = [place(connection, fence.id) for fence in fences]

    assert end(connection, fences, [places[1], places[2], places[0]]) is None
    assert outcomes(connection, fences) == [("done", f"ok: {fence.id}") for fence in fences]


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "moved"])
def test_f25_the_fence_holds_by_place_and_by_id(connection: sa.Connection, is_there: bool) -> None:
    kept, lost = add_running(connection), add_running(connection)

    for wrong in stale(lost):
        of_me = [kept] if wrong.worker_id == ME else []
        where = [place(connection, fence.id) if is_there else NOWHERE for fence in [*of_me, wrong]]
        savepoint = connection.begin_nested()
        assert end(connection, [*of_me, wrong], where, me=wrong.worker_id) == {fence.id for fence in of_me}
        savepoint.rollback()
    assert running_on(connection, ME) == [kept.id, lost.id]
    assert running_on(connection, OTHER) == []
