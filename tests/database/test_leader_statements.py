from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended
from store_rows import ME, OTHER, in_thread

from jobq.store.cleaning import START, delete_expired, delete_old_sums
from jobq.store.leading import Office, Summed, campaign, renew, sum_up, taken_for
from jobq.store.leasing import leave
from jobq.tables import finished_jobs, leader, sums

LEASE = timedelta(seconds=10)
PAST = NOW - timedelta(hours=2)


def elected(connection: sa.Connection, worker_id: int = ME) -> Office:
    office = campaign(connection, worker_id, LEASE)
    assert office is not None
    return office


def let_lapse(connection: sa.Connection) -> None:
    connection.execute(sa.update(leader).values(lease_until=NOW))


def row(connection: sa.Connection) -> tuple[int | None, int]:
    found = connection.execute(sa.select(leader.c.worker_id, leader.c.term)).one()
    return found.worker_id, found.term


def test_the_first_who_asks_is_elected_and_the_others_are_not(connection: sa.Connection) -> None:
    assert campaign(connection, ME, LEASE) == Office(ME, 1)
    assert campaign(connection, OTHER, LEASE) is None
    assert campaign(connection, ME, LEASE) is None, "a leader renews, it does not ask again"
    assert row(connection) == (ME, 1)


def test_the_office_says_for_how_long_it_is_taken(connection: sa.Connection) -> None:
    assert taken_for(connection) == 0
    elected(connection)
    assert taken_for(connection) == 10
    connection.execute(sa.update(leader).values(lease_until=NOW - timedelta(hours=1)))
    assert taken_for(connection) == 0


def test_of_workers_that_ask_at_once_one_is_elected(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        first = elected(connection)
        with in_thread(engine, lambda other: campaign(other, OTHER, LEASE)) as second:
            connection.commit()
            assert second.result(30) is None

        assert (first, row(connection)) == (Office(ME, 1), (ME, 1))


def test_an_office_that_lapsed_goes_to_another_under_the_next_term(connection: sa.Connection) -> None:
    elected(connection)
    let_lapse(connection)

    assert campaign(connection, OTHER, LEASE) == Office(OTHER, 2)


def test_a_worker_that_leaves_gives_up_its_office_and_no_other(connection: sa.Connection) -> None:
    elected(connection)

    leave(connection, worker_id=OTHER, held=[], channel=None)
    assert campaign(connection, OTHER, LEASE) is None
    leave(connection, worker_id=ME, held=[], channel=None)

    assert campaign(connection, OTHER, LEASE) == Office(OTHER, 2)


def test_leaving_does_not_wait_for_what_is_done_in_the_office(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        elected(connection)
    with engine.begin() as busy, engine.begin() as connection:
        busy.execute(sa.select(leader.c.term).with_for_update(read=True))

        leave(connection, worker_id=ME, held=[], channel=None)

        assert row(connection) == (ME, 1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda connection, office: replace(office, term=office.term - 1), id="a former term"),
        pytest.param(lambda connection, office: replace(office, worker_id=OTHER), id="another worker"),
        pytest.param(lambda connection, office: let_lapse(connection) or office, id="lapsed"),
    ],
)
def test_who_is_not_in_office_changes_nothing(
    connection: sa.Connection, change: Callable[[sa.Connection, Office], Office]
) -> None:
    elected(connection, OTHER)
    let_lapse(connection)
    deposed = change(connection, elected(connection))
    add_ended(connection, "done", finished_at=PAST, expires_at=PAST)
    old = {"starts_at": NOW - timedelta(days=900), "queue": "q", "kind": "k", "state": "done", "word": "ok"}
    connection.execute(sa.insert(sums).values(minutes=60, finished=1, buckets=[], counts=[], **old))

    assert not renew(connection, deposed, LEASE)
    assert delete_expired(connection, since=START, most=100, office=deposed).deleted == 0
    assert sum_up(connection, deposed) == Summed(None, True)
    delete_old_sums(connection, deposed)

    assert connection.scalar(sa.select(sa.func.count()).select_from(finished_jobs)) == 1
    assert connection.scalars(sa.select(sums.c.minutes)).all() == [60]
    assert connection.scalar(sa.select(leader.c.summed_until)) is None


def test_who_is_in_office_renews_deletes_and_sums(connection: sa.Connection) -> None:
    office = elected(connection)
    add_ended(connection, "done", finished_at=PAST, expires_at=PAST)
    connection.execute(sa.update(leader).values(lease_until=NOW + timedelta(seconds=1)))

    assert renew(connection, office, LEASE)
    assert connection.scalar(sa.select(leader.c.lease_until - NOW)) == LEASE
    while not sum_up(connection, office).is_last:
        pass
    assert delete_expired(connection, since=START, most=100, office=office).deleted == 1
    assert connection.scalars(sa.select(sums.c.finished)).all() == [1, 1], "of the minute and of the hour"


def test_a_successor_waits_for_a_statement_that_is_under_way(engine: sa.Engine) -> None:
    """So nothing of a former term is written after the first of the next."""
    with engine.begin() as connection:
        office = elected(connection)
    with engine.connect() as connection:
        delete_expired(connection, since=START, most=100, office=office)

        def succeed(other: sa.Connection) -> Office | None:
            let_lapse(other)
            return campaign(other, OTHER, LEASE)

        with in_thread(engine, succeed) as successor:
            connection.commit()
            assert successor.result(30) == Office(OTHER, 2)


def test_a_statement_that_waited_for_the_successor_does_nothing(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        office = elected(connection)
        add_ended(connection, "done", finished_at=PAST, expires_at=PAST)
    with engine.connect() as successor:
        let_lapse(successor)
        assert campaign(successor, OTHER, LEASE) == Office(OTHER, 2)

        def delete(deposed: sa.Connection) -> int:
            return delete_expired(deposed, since=START, most=100, office=office).deleted

        with in_thread(engine, delete) as deleted:
            successor.commit()
            assert deleted.result(30) == 0
