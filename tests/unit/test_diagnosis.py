from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobq.diagnosis import Check, Health, WorkerFacts, diagnose, readiness
from jobq.report import QueueStats, Stats, WorkerRow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOOD = WorkerFacts(is_running=True, lease_left=timedelta(seconds=30), has_claimed=True)


def changed(**facts: Any) -> WorkerFacts:
    return WorkerFacts(**{**{name: getattr(GOOD, name) for name in WorkerFacts.__dataclass_fields__}, **facts})


def test_a_worker_that_claims_is_ready() -> None:
    found = readiness(GOOD)

    assert found.is_ok
    assert [check.name for check in found.checks] == ["running", "lease", "claims"]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (WorkerFacts(), "the worker does not run"),
        (changed(is_stopping=True), "the worker is stopping"),
        (changed(lease_left=None), "the worker is not registered"),
        (changed(lease_left=timedelta(0)), "the worker's lease has run out"),
        (changed(has_claimed=False), "no claim has succeeded yet"),
        (changed(behind_for=timedelta(seconds=4)), "no claim has succeeded for 4 s"),
    ],
)
def test_a_worker_that_does_not_take_jobs_says_why(facts: WorkerFacts, said: str) -> None:
    (problem,) = readiness(facts).problems

    assert problem.startswith(said)


def test_a_claim_that_takes_its_time_is_not_yet_a_stall() -> None:
    assert readiness(changed(behind_for=timedelta(seconds=3))).is_ok
    assert readiness(changed(behind_for=timedelta(seconds=9), patience=timedelta(seconds=10))).is_ok


def worker(*, queues: tuple[str, ...] | None = None, kinds: tuple[str, ...] = ("k",), alive: bool = True) -> WorkerRow:
    return WorkerRow(
        id=1, name="w", hostname=None, pid=None, version=None, queues=queues, kinds=kinds, concurrency=1,
        started_at=NOON, lease_until=NOON, alive=alive, is_leader=False, running=0, read_at=NOON,
    )  # fmt: skip


def problems(
    *queues: QueueStats,
    workers: tuple[WorkerRow, ...] = (),
    due: dict[tuple[str, str], int] | None = None,
    min_workers: int = 0,
    max_age: timedelta | None = None,
) -> tuple[str, ...]:
    found = diagnose(Stats(NOON, queues), workers, due or {}, min_workers=min_workers, max_age=max_age)
    return Health(found).problems


def test_nothing_to_do_and_nobody_wanted_is_well() -> None:
    assert problems() == ()


@pytest.mark.parametrize(("alive", "wanted", "is_ok"), [(1, 1, True), (0, 1, False), (2, 3, False), (0, 0, True)])
def test_only_workers_that_are_alive_count(alive: int, wanted: int, is_ok: bool) -> None:
    found = problems(workers=(worker(alive=False), *[worker()] * alive), min_workers=wanted)

    assert (found == ()) is is_ok


def test_the_queue_that_waits_longest_is_named() -> None:
    queues = [QueueStats("a", oldest_due=timedelta(seconds=301)), QueueStats("b", oldest_due=timedelta(seconds=400))]

    assert problems(*queues) == ()
    assert problems(*queues, max_age=timedelta(seconds=400)) == ()
    assert problems(*queues, max_age=timedelta(minutes=5)) == (
        "queue b: its oldest due job waits for 6m 40s (and 1 more): see jobq stats",
    )


def test_a_pause_is_named_where_it_lets_jobs_wait() -> None:
    paused = QueueStats("a", oldest_due=timedelta(hours=1), paused_until=NOON)

    (said,) = problems(paused, max_age=timedelta(minutes=5))

    assert said.endswith("it is paused until 2026-03-01 12:00:00 UTC: jobq resume a")


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ((), "queue q: jobs are due and no live worker serves it"),
        ((worker(alive=False),), "queue q: jobs are due and no live worker serves it"),
        ((worker(queues=("other",)),), "queue q: jobs are due and no live worker serves it"),
        ((worker(kinds=("other",)),), "queue q: jobs of kind k are due and no live worker of this queue has a handler"),
        (
            (worker(queues=("q",), kinds=("other",)), worker(queues=("other",))),
            "queue q: jobs of kind k are due and no live worker of this queue has a handler",
        ),
        ((worker(queues=("q",)),), None),
        ((worker(),), None),
    ],
    ids=["nobody", "gone", "other-queue", "other-kind", "each-half", "its-queue", "all-queues"],
)
def test_due_jobs_need_a_worker_for_their_queue_and_kind(workers: tuple[WorkerRow, ...], said: str | None) -> None:
    found = problems(workers=workers, due={("q", "k"): 3, ("idle", "k2"): 0})

    assert found == () if said is None else found[0].startswith(said)


def test_of_several_queues_that_nobody_serves_one_is_named_and_the_others_counted() -> None:
    (said,) = problems(due={("b", "k"): 1, ("a", "k"): 1, ("c", "k"): 1})

    assert said.startswith("queue a: ")
    assert "(and 2 more)" in said


def test_problems_are_those_of_the_checks_that_failed() -> None:
    found = Health((Check("database"), Check("schema", "old")))

    assert (found.is_ok, found.problems) == (False, ("old",))
