"""Every order of two acts on one job, on real SQL: the end is that of one after the other, and no guarantee breaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest
import sqlalchemy as sa
from actors import ACTS, MORE_ACTS, SCENES, Act
from guarantees import Violation, by_the_journal
from interleaving import Stage, stage
from journal import keep_journal
from lengths import length
from tally import tally

from jobq.statements import put_back
from jobq.tables import jobs, workers

CI = ["due, its former holder lost", "running, its holder lost", "running for the last time, its holder lost", "done"]


def play(place: Stage, scene: str, acts: dict[str, Act]) -> list[Violation]:
    """Each act with each, and with itself."""
    found = [
        violation
        for first, second in combinations_with_replacement(acts, 2)
        for violation in place.all_orders(SCENES[scene], first, second)
    ]
    with place.watch.begin():
        return found + by_the_journal(place.watch, place.by_hand)


@pytest.fixture
def journaled(engine: sa.Engine) -> sa.Engine:
    with engine.begin() as connection:
        keep_journal(connection)
    return engine


@pytest.mark.parametrize("scene", length(ci=CI, chaos=list(SCENES), long=list(SCENES)))
def test_two_acts_at_once_are_as_one_after_the_other(journaled: sa.Engine, scene: str) -> None:
    every = {**ACTS, **MORE_ACTS}
    acts = SCENES[scene].acts(length(ci=ACTS, chaos=every, long=every))

    with stage(journaled, acts) as place:
        found = play(place, scene, acts)

        assert found == []
        tally(f"A8 interleavings, {scene}", interleavings=place.played, blocked=place.waited, violations=len(found))


@pytest.fixture
def no_fence(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`put_back` by the job's id alone."""
    whole = put_back.still_mine()
    put_back.put_back.cache_clear()
    monkeypatch.setattr(put_back, "still_mine", lambda: whole[:1])
    yield
    put_back.put_back.cache_clear()


@pytest.mark.usefixtures("no_fence")
def test_a_write_without_its_fence_is_reported(journaled: sa.Engine) -> None:
    acts = {name: ACTS[name] for name in ("retry", "release", "rescue")}

    with stage(journaled, acts) as place:
        found = play(place, "running", acts)

    assert "G4" in {violation.guarantee for violation in found}
    tally("A8 seeded: no fence", guarantees="G4", caught=1)


def hasty_rescue(connection: sa.Connection, id_: int) -> bool:
    """In one statement, whose snapshot is older than a claim that it then waits for."""
    over = sa.select(workers.c.id).where(workers.c.lease_until < sa.func.now()).with_for_update()
    ids = sa.select(over.cte("over").c.id)
    lost = sa.delete(workers).where(workers.c.id.in_(ids)).returning(workers.c.id).cte("lost")
    back = sa.update(jobs).where(jobs.c.worker_id.in_(sa.select(lost.c.id))).values(worker_id=None)
    return bool(connection.execute(back.returning(jobs.c.id)).all())


def test_a_rescue_in_one_statement_is_reported(journaled: sa.Engine) -> None:
    acts = {"late claim": ACTS["late claim"], "rescue": hasty_rescue}

    with stage(journaled, acts) as place:
        found = play(place, "due, its former holder lost", acts)

    assert "G11" in {violation.guarantee for violation in found}
    tally("A8 seeded: one-statement rescue", guarantees="G11", caught=1)


def test_an_end_in_two_statements_is_reported(journaled: sa.Engine) -> None:
    """A cancel that looks first and writes then, without a lock."""

    def cancel(connection: sa.Connection, id_: int) -> bool:
        if connection.execute(sa.select(jobs.c.id).where(jobs.c.id == id_)).first() is None:
            return False
        connection.execute(sa.delete(jobs).where(jobs.c.id == id_))
        return False

    acts = {"cancel": cancel, "complete": ACTS["complete"]}

    with stage(journaled, acts) as place:
        found = play(place, "running", acts)

    assert "G1" in {violation.guarantee for violation in found}
    tally("A8 seeded: deleted without an end", guarantees="G1", caught=1)
