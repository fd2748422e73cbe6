"""The decision of `jobq.why`: for any facts, mending the cause that is named brings the job nearer to its run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobq.answers.causes import Cause, Why
from jobq.answers.decide import decide
from jobq.answers.facts import Facts, JobFacts, QueueFacts, SlotFacts, WorkerFacts
from jobq.model import Failure, State

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
FOR_PEOPLE = {Cause.ATTEMPTS_USED_UP, Cause.NO_WORKER, Cause.NO_WORKER_FOR_QUEUE, Cause.NO_HANDLER}
TIMED = {Cause.PAUSED, Cause.SCHEDULED, Cause.RETRY, Cause.THROTTLED}
FAILED = Failure(2, NOW - MINUTE, "w", "ValueError", "no")


def job(id_: int = 42, **values: object) -> JobFacts:
    return JobFacts(
        **{"id": id_, "kind": "k", "queue": "q", "priority": 1, "state": State.PENDING, "run_at": NOW - HOUR, **values}  # type: ignore[arg-type]
    )


def worker(id_: int = 7, **values: object) -> WorkerFacts:
    about = {"queues": None, "kinds": frozenset({"k"}), "concurrency": 20, "running": 0, "lease": MINUTE}
    return WorkerFacts(id=id_, name=f"w{id_}", **{**about, "lease_until": NOW + 50 * SECOND, **values})  # type: ignore[arg-type]


def facts(asked: JobFacts | None = None, **values: object) -> Facts:
    """Nothing holds the job up, but for what is said."""
    return Facts(now=NOW, job=asked or job(), **{"workers": (worker(),), **values})  # type: ignore[arg-type]


def causes_of(answer: Why) -> list[Cause]:
    """The named one first."""
    return [answer.cause, *(reason.cause for reason in answer.also)]


def mended(found: Facts, cause: Cause) -> Facts:
    """The facts as they are once somebody has removed the cause."""
    return MENDS[cause](found)


def _with_worker(found: Facts) -> Facts:
    return replace(found, workers=(*found.workers, worker(99)))


def _free_slot(found: Facts) -> Facts:
    """What runs has ended, or the limit is higher."""
    there = {slot.n: replace(slot, worker_id=None, job_id=None) for slot in found.slots}
    return replace(found, slots=tuple(({1: SlotFacts(1)} | there).values()))


def _at_once(found: Facts) -> Facts:
    """A retry waits by its own time, or in a FIFO queue by that of the slot."""
    if found.job.run_at > NOW:
        return replace(found, job=replace(found.job, run_at=NOW, failure=None))
    return replace(found, slots=tuple(replace(slot, ready_at=None) for slot in found.slots))


MENDS = {
    Cause.ATTEMPTS_USED_UP: lambda found: replace(found, job=replace(found.job, failures=0)),
    Cause.NO_WORKER: _with_worker,
    Cause.NO_WORKER_FOR_QUEUE: lambda found: replace(
        found, workers=tuple(replace(each, queues=None) for each in found.workers)
    ),
    Cause.NO_HANDLER: lambda found: replace(
        found, workers=tuple(replace(each, kinds=each.kinds | {"k"}) for each in found.workers)
    ),
    Cause.PAUSED: lambda found: replace(found, queue=replace(found.queue, paused_until=None)),
    Cause.SCHEDULED: lambda found: replace(found, job=replace(found.job, run_at=NOW)),
    Cause.RETRY: _at_once,
    Cause.THROTTLED: lambda found: replace(
        found, slots=tuple(replace(slot, ready_at=None) for slot in found.slots)
    ),
    Cause.LOCKED: lambda found: replace(found, job=replace(found.job, locked_by=None)),
    Cause.HEAD: lambda found: replace(found, head=found.job, before=0),
    Cause.LIMIT: _free_slot,
    Cause.IN_LINE: lambda found: replace(found, before=0),
    Cause.BUSY: _with_worker,
}  # fmt: skip

spans = st.sampled_from([-HOUR, -SECOND, SECOND, MINUTE, HOUR])
moments = spans.map(lambda span: NOW + span)
later = st.sampled_from([None, NOW + SECOND, NOW + MINUTE, NOW + HOUR])
jobs = st.builds(
    job,
    run_at=moments,
    attempt=st.integers(0, 2),
    failures=st.integers(0, 3),
    own_max_attempts=st.sampled_from([None, 2, 5]),
    max_attempts=st.sampled_from([None, 2, 5]),
    failure=st.sampled_from([None, FAILED]),
    locked_by=st.sampled_from([None, "123 psql"]),
)
workers = st.builds(
    worker,
    st.integers(1, 3),
    queues=st.sampled_from([None, frozenset({"q"}), frozenset({"other"})]),
    kinds=st.sampled_from([frozenset({"k"}), frozenset({"other"})]),
    concurrency=st.sampled_from([None, 1, 20]),
    running=st.integers(0, 2),
    lease_until=moments,
)
slots = st.lists(
    st.tuples(later, st.sampled_from([None, 7])), max_size=3
).map(
    lambda found: tuple(
        SlotFacts(n, holder, 40 + n if holder else None, at) for n, (at, holder) in enumerate(found, 1)
    )
)  # fmt: skip
queues = st.sampled_from([(False, None), (False, 1), (False, 3), (True, 1)]).flatmap(
    lambda said: st.builds(
        QueueFacts, fifo=st.just(said[0]), limit=st.just(said[1]), paused_until=later,
        pause_reason=st.sampled_from([None, "out of credit"]),
    )
)  # fmt: skip


@st.composite
def anything(draw: st.DrawFn) -> Facts:
    asked, queue = draw(jobs), draw(queues)
    head = None
    if queue.fifo and draw(st.booleans()):
        head = draw(st.sampled_from([asked, job(41), job(41, state=State.RUNNING, worker_id=7, attempted_at=NOW)]))
    before = draw(st.sampled_from([0, 0, 1, 5, 10_001]))
    found = draw(st.lists(workers, max_size=3, unique_by=lambda each: each.id))
    return facts(asked, queue=queue, head=head, slots=draw(slots), workers=tuple(found), before=before)


@given(anything())
@settings(max_examples=200, deadline=None)
def test_removing_the_named_cause_again_and_again_ends_with_a_job_that_would_run(found: Facts) -> None:
    named: list[Cause] = []
    while (answer := decide(found)).cause is not Cause.DUE:
        named.append(answer.cause)
        found = mended(found, answer.cause)
        assert len(named) <= len(Cause), named

    assert len(named) == len(set(named)), named


@given(anything())
@settings(max_examples=200, deadline=None)
def test_removing_any_other_cause_than_the_named_one_does_not_let_the_job_run(found: Facts) -> None:
    answer = decide(found)
    causes = causes_of(answer)

    assert len(causes) == len(set(causes))
    for other in answer.also:
        assert answer.cause in causes_of(decide(mended(found, other.cause)))


@given(anything())
@settings(max_examples=200, deadline=None)
def test_what_a_person_has_to_mend_comes_first_and_then_what_lasts_longest(found: Facts) -> None:
    answer = decide(found)
    found_reasons = [answer.reason, *answer.also]

    ranks = [0 if each.cause in FOR_PEOPLE else 1 if each.cause in TIMED else 2 for each in found_reasons]
    ends = [each.until for each in found_reasons if each.cause in TIMED]
    assert ranks == sorted(ranks)
    assert ends == sorted(ends, reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("found", "cause", "words"),
    [
        pytest.param(facts(), Cause.DUE, "is due for 1h and nothing holds it up", id="due"),
        pytest.param(
            facts(queue=QueueFacts(limit=2), slots=(SlotFacts(1, ready_at=NOW + MINUTE), SlotFacts(2))), Cause.DUE,
            "nothing holds it up", id="one slot of two is ready",
        ),
        pytest.param(facts(workers=()), Cause.NO_WORKER, "there is no live worker", id="no worker"),
        pytest.param(
            facts(workers=(worker(lease_until=NOW - MINUTE),)), Cause.NO_WORKER,
            "there is no live worker (the lease of w7 ran out 1m ago)", id="a worker that was lost",
        ),
        pytest.param(
            facts(workers=(worker(queues=frozenset({"a", "b"})),)), Cause.NO_WORKER_FOR_QUEUE,
            "no live worker serves its queue q (w7 serves a, b)", id="another queue",
        ),
        pytest.param(
            facts(workers=(worker(kinds=frozenset()), worker(8, kinds=frozenset()))), Cause.NO_HANDLER,
            "(w7, w8 serve the queue)", id="another kind, to several",
        ),
        pytest.param(
            facts(workers=(worker(kinds=frozenset()), worker(8, queues=frozenset({"a"})))), Cause.NO_HANDLER,
            "no live worker of its queue q has a handler for its kind k (w7 serves the queue; w8 has a handler, and"
            " serves other queues)", id="another kind",
        ),
        pytest.param(
            facts(queue=QueueFacts(paused_until=NOW + HOUR, pause_reason="out of credit")), Cause.PAUSED,
            "its queue q is paused until 2026-03-01 13:00:00 UTC, in 1h, because: out of credit", id="paused",
        ),
        pytest.param(
            facts(queue=QueueFacts(paused_until=datetime(9000, 1, 1, tzinfo=UTC))), Cause.PAUSED,
            "its queue q is paused until it is resumed", id="paused without an end",
        ),
        pytest.param(
            facts(job(run_at=NOW + HOUR)), Cause.SCHEDULED, "is scheduled for 2026-03-01 13:00:00 UTC, in 1h",
            id="scheduled",
        ),
        pytest.param(
            facts(job(run_at=NOW + SECOND, attempt=3, failures=2, failure=FAILED)), Cause.SCHEDULED,
            "was put off after attempt 3", id="snoozed",
        ),
        pytest.param(
            facts(job(run_at=NOW + SECOND, attempt=2, failures=2, max_attempts=5, failure=FAILED)), Cause.RETRY,
            "waits for retry 3 of 5, at 2026-03-01 12:00:01 UTC, in 1s, after ValueError: no", id="retry",
        ),
        pytest.param(
            facts(
                job(attempt=2, failures=2, max_attempts=5, failure=FAILED), queue=QueueFacts(fifo=True, limit=1),
                head=job(), slots=(SlotFacts(1, ready_at=NOW + MINUTE),),
            ), Cause.RETRY, "waits for retry 3 of 5, at 2026-03-01 12:01:00 UTC, in 1m, after ValueError: no;"
            " it keeps its place in queue q", id="retry in order",
        ),
        pytest.param(
            facts(queue=QueueFacts(limit=1), slots=(SlotFacts(1, ready_at=NOW + MINUTE),)), Cause.THROTTLED,
            "its queue q is held back until 2026-03-01 12:01:00 UTC, in 1m, by its throttle", id="throttled",
        ),
        pytest.param(
            facts(
                queue=QueueFacts(fifo=True, limit=1), head=job(), slots=(SlotFacts(1, ready_at=NOW + MINUTE),),
            ), Cause.THROTTLED, "in 1m, by its throttle, or the retry of a job before", id="held back in order",
        ),
        pytest.param(
            facts(queue=QueueFacts(limit=2), slots=(SlotFacts(1, 7, 40), SlotFacts(2, 8, 41))), Cause.LIMIT,
            "its queue q is at its limit of 2 at a time: job 40 on worker w7, job 41 on worker 8, which is gone",
            id="at the limit",
        ),
        pytest.param(
            facts(queue=QueueFacts(limit=1), slots=(SlotFacts(1), SlotFacts(2, 7, 40))), Cause.LIMIT,
            "at its limit of 1 at a time: job 40", id="above a lowered limit",
        ),
        pytest.param(facts(queue=QueueFacts(limit=1)), Cause.LIMIT, "no slots yet", id="without slots"),
        pytest.param(
            facts(
                queue=QueueFacts(fifo=True, limit=1), before=3, slots=(SlotFacts(1, 7, 41),),
                head=job(41, state=State.RUNNING, worker_id=7, attempt=1, attempted_at=NOW - MINUTE),
            ), Cause.HEAD, "3 jobs are before it in its FIFO queue q, of which job 41 comes first; job 41 runs since"
            " 2026-03-01 11:59:00 UTC, 1m ago: attempt 1, held by worker w7, whose last beat was 10s ago",
            id="the head runs",
        ),
        pytest.param(
            facts(queue=QueueFacts(fifo=True, limit=1), before=1, slots=(SlotFacts(1),), head=job(41, kind="odd")),
            Cause.HEAD, "job 41 is before it in its FIFO queue q; job 41 waits: no live"
            " worker of its queue q has a handler for its kind odd", id="nobody knows the head",
        ),
        pytest.param(
            facts(before=10_001), Cause.IN_LINE, "more than 10000 due jobs come before it in queue q (w7 runs 0 of 20)",
            id="in line",
        ),
        pytest.param(
            facts(workers=(worker(concurrency=1, running=1),)), Cause.BUSY,
            "all that can run it are full (w7 runs 1 of 1)", id="busy",
        ),
        pytest.param(
            facts(workers=(worker(running=869),)), Cause.BUSY,
            "all that can run it are full (w7 runs 20 of 20 and has claimed 849 ahead)", id="behind a look-ahead",
        ),
        pytest.param(facts(job(locked_by="12 psql")), Cause.LOCKED, "locked its row", id="locked"),
        pytest.param(
            facts(job(failures=3, own_max_attempts=3)), Cause.ATTEMPTS_USED_UP, "will never be claimed: 3 failures",
            id="used up",
        ),
        pytest.param(
            facts(job(state=State.RUNNING, worker_id=7, attempt=1, attempted_at=NOW - MINUTE)), Cause.RUNNING,
            "runs since 2026-03-01 11:59:00 UTC, 1m ago: attempt 1, held by worker w7, whose last beat was 10s ago",
            id="running",
        ),
        pytest.param(
            facts(
                job(state=State.RUNNING, worker_id=7, attempt=1, attempted_at=NOW - MINUTE),
                workers=(worker(running=869),),
            ), Cause.RUNNING,
            "whose last beat was 10s ago and which holds 869 and runs 20 at a time: it may wait there",
            id="in a look-ahead",
        ),
        pytest.param(
            facts(
                job(state=State.RUNNING, worker_id=7, attempt=1, attempted_at=NOW - MINUTE),
                workers=(worker(lease_until=NOW - SECOND), worker(8)),
            ), Cause.LOST, "held by worker w7, whose lease ran out 1s ago; a live worker is about to rescue it",
            id="lost",
        ),
        pytest.param(
            facts(job(state=State.RUNNING, worker_id=5, attempt=1, attempted_at=NOW), workers=()), Cause.LOST,
            "held by worker 5, which is gone, and there is no live worker to rescue it", id="lost for good",
        ),
        pytest.param(
            facts(job(state=State.DEAD, finished_at=NOW - HOUR, outcome="err: ValueError: no")), Cause.DEAD,
            "is dead since 2026-03-01 11:00:00 UTC, 1h ago: err: ValueError: no", id="dead",
        ),
        pytest.param(
            facts(job(state=State.CANCELLED, finished_at=NOW)), Cause.CANCELLED, "is cancelled since", id="cancelled"
        ),
        pytest.param(facts(job(state=State.DONE, finished_at=NOW)), Cause.DONE, "is done since", id="done"),
    ],
)  # fmt: skip
def test_each_cause_has_its_words(found: Facts, cause: Cause, words: str) -> None:
    answer = decide(found)

    assert answer.cause is cause
    assert words in str(answer)


@pytest.mark.parametrize(
    ("found", "causes"),
    [
        pytest.param(
            facts(queue=QueueFacts(paused_until=NOW + HOUR), workers=()), [Cause.NO_WORKER, Cause.PAUSED],
            id="without a worker the end of the pause changes nothing",
        ),
        pytest.param(
            facts(job(run_at=NOW + MINUTE), queue=QueueFacts(paused_until=NOW + HOUR)),
            [Cause.PAUSED, Cause.SCHEDULED], id="due before the pause ends",
        ),
        pytest.param(
            facts(job(run_at=NOW + HOUR), queue=QueueFacts(paused_until=NOW + MINUTE)),
            [Cause.SCHEDULED, Cause.PAUSED], id="due after the pause ends",
        ),
        pytest.param(
            facts(queue=QueueFacts(limit=1, paused_until=NOW + HOUR), slots=(SlotFacts(1, 7, 41),)),
            [Cause.PAUSED, Cause.LIMIT], id="what runs in a paused queue ends by itself",
        ),
        pytest.param(
            facts(before=3, workers=(worker(concurrency=1, running=1),)), [Cause.IN_LINE, Cause.BUSY],
            id="full workers with others first",
        ),
        pytest.param(facts(job(run_at=NOW + HOUR), before=3), [Cause.SCHEDULED], id="who is first then is not known"),
    ],
)  # fmt: skip
def test_of_two_causes_the_one_that_binds_is_named_first(found: Facts, causes: list[Cause]) -> None:
    assert causes_of(decide(found)) == causes
