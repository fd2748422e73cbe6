"""Everything that a job can wait for, made so by workers in processes of their own, and what `jobq why` says of it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from typing import Any

import pytest
from asked import fail, quick, snooze, stop, wait
from board import Board
from fleet import Fleet, until

import jobq
from jobq.model import State
from jobq_cli.app import run

HOUR = timedelta(hours=1)
HERE: dict[str, Any] = {"app": "asked:app", "poll_interval": 0.2}


class Operator:
    """Somebody at a terminal. The commands run in this process: to start thirty more would take most of the time."""

    def __init__(self, url: str) -> None:
        self.url = url

    def type(self, *words: object) -> str:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = run(["--database-url", self.url, *map(str, words)])
        assert code == 0, err.getvalue()
        return out.getvalue()

    def why(self, id_: int) -> dict[str, Any]:
        found = json.loads(self.type("why", id_, "--json"))
        assert isinstance(found, dict)
        return found

    def causes(self, id_: int) -> list[str]:
        """The named one first."""
        found = self.why(id_)
        return [found["cause"], *(each["cause"] for each in found["also"])]


@pytest.fixture
def operator(board: Board) -> Operator:
    return Operator(board.url)


def test_what_workers_there_are_and_what_they_can_do(board: Board, fleet: Fleet, operator: Operator) -> None:
    unknown = board.enqueue(jobq.kind("nobody.knows", queue="plain"))
    due = board.enqueue(quick.options(queue="later"))
    assert operator.causes(due) == ["no worker"]

    fleet.start(**HERE, name="w1", queues="plain")
    found = operator.why(due)
    assert found["cause"] == "no worker for queue"
    assert "no live worker serves its queue later (w1 serves plain)" in found["words"]
    assert found["command"] == "jobq run MODULE:APP --queues later"
    found = operator.why(unknown)
    assert found["cause"] == "no handler"
    assert "has a handler for its kind nobody.knows (w1 serves the queue)" in found["words"]

    fleet.start(**HERE, name="w2", queues="later")
    board.until_state(due, State.DONE)
    found = operator.why(due)
    assert (found["cause"], found["state"]) == ("done", "done")
    assert found["words"].endswith(": ok: all done")


def test_a_killed_worker_is_told_from_one_that_lives(board: Board, fleet: Fleet, operator: Operator) -> None:
    worker = fleet.start(**HERE, name="w1", lease=1)
    held = board.enqueue(wait)
    board.until_state(held, State.RUNNING)
    found = operator.why(held)
    assert found["cause"] == "running"
    assert "attempt 1, held by worker w1, whose last beat was" in found["words"]

    worker.kill()
    lost = until(lambda: found if (found := operator.why(held))["cause"] == "lost" else None, "the end of the lease")
    assert "held by worker w1, whose lease ran out" in lost["words"]
    assert "there is no live worker to rescue it" in lost["words"]
    waits = operator.why(board.enqueue(quick))
    assert waits["cause"] == "no worker"
    assert "(the lease of w1 ran out" in waits["words"]

    fleet.start(**HERE, name="w2", lease=1)
    until(lambda: "held by worker w2" in operator.why(held)["words"], "the rescue")


def test_what_a_job_has_to_wait_for_until_a_time(board: Board, fleet: Fleet, operator: Operator) -> None:
    scheduled = board.enqueue(quick.options(delay=HOUR))
    failed, snoozed, stopped, paced = (
        board.enqueue(each) for each in (fail, snooze, stop, quick.options(queue="paced"))
    )
    in_order = board.enqueue(fail.options(queue="one"))
    fleet.start(**HERE, name="w1")
    board.until_state(paced, State.DONE)
    until(lambda: all(board.job(each).attempt for each in (failed, snoozed, stopped, in_order)), "their attempts")
    for each in (failed, snoozed, stopped, in_order):
        board.until_state(each, State.PENDING)
    behind, after = board.enqueue(quick.options(queue="paced")), board.enqueue(quick.options(queue="one"))

    asked = {each: operator.why(each) for each in (scheduled, failed, snoozed, stopped, behind, in_order, after)}

    assert {each: found["cause"] for each, found in asked.items()} == {
        scheduled: "scheduled", failed: "retry", snoozed: "scheduled", stopped: "paused", behind: "throttled",
        in_order: "retry", after: "head",
    }  # fmt: skip
    assert "waits for retry 2 of 3, at " in asked[failed]["words"]
    assert asked[failed]["words"].endswith("after ValueError: no such card")
    assert "was put off after attempt 1" in asked[snoozed]["words"]
    assert "its queue stopped is paused until" in asked[stopped]["words"]
    assert asked[stopped]["words"].endswith("because: HTTP 401")
    assert "it keeps its place in queue one" in asked[in_order]["words"]
    assert asked[after]["jobs"] == [in_order]
    assert f"job {in_order} waits for retry 2 of 3" in asked[after]["words"]


def test_who_is_before_it_and_who_holds_the_room(board: Board, fleet: Fleet, operator: Operator) -> None:
    first, few, second, third, narrow = (
        board.enqueue(wait.options(queue=queue)) for queue in ("one", "few", "one", "few", "narrow")
    )
    fleet.start(**HERE, name="w1", queues="one,few")
    fleet.start(**HERE, name="w2", queues="narrow", concurrency=1)
    for each in (first, few, narrow):
        board.until_state(each, State.RUNNING)
    next_one, after_that = (board.enqueue(wait.options(queue="narrow")) for _ in range(2))

    asked = {each: operator.why(each) for each in (second, third, next_one, after_that)}

    assert {each: found["cause"] for each, found in asked.items()} == {
        second: "head", third: "limit", next_one: "busy", after_that: "in line",
    }  # fmt: skip
    assert f"job {first} is before it in its FIFO queue one; job {first} runs since" in asked[second]["words"]
    assert "held by worker w1" in asked[second]["words"]
    assert f"at its limit of 1 at a time: job {few} on worker w1" in asked[third]["words"]
    assert "(w2 runs 1 of 1)" in asked[next_one]["words"]
    assert "1 due job comes before it in queue narrow (w2 runs 1 of 1)" in asked[after_that]["words"]

    operator.type("queue", "set", "few", "--concurrency", 2)
    board.until_state(third, State.RUNNING)


def test_what_somebody_did_by_hand(board: Board, fleet: Fleet, operator: Operator) -> None:
    fleet.start(**HERE, name="w1")
    operator.type("pause", "plain", "--for", "1h", "--reason", "the provider is down")
    paused = board.enqueue(quick)
    found = operator.why(paused)
    assert found["cause"] == "paused"
    assert found["words"].endswith("because: the provider is down")
    assert found["command"] == "jobq resume plain"
    cancelled = board.enqueue(quick)
    operator.type("cancel", cancelled)
    assert operator.causes(cancelled) == ["cancelled"]

    with board.holding("SELECT FROM jobq.jobs WHERE id = :id FOR UPDATE", id=paused):
        operator.type(*found["command"].split()[1:])
        assert operator.causes(paused) == ["locked"]
    board.until_state(paused, State.DONE)

    used_up = board.enqueue(quick.options(max_attempts=1, delay=HOUR))
    board.rows("UPDATE jobq.jobs SET failures = 1, run_at = now() WHERE id = :id", id=used_up)
    found = operator.why(used_up)
    assert found["cause"] == "attempts used up"
    for command in found["command"].split(" && "):
        operator.type(*command.split()[1:])
    board.until_state(used_up, State.DONE)


def test_of_several_causes_the_named_one_is_removed_until_the_job_runs(
    board: Board, fleet: Fleet, operator: Operator
) -> None:
    operator.type("pause", "few")
    job = board.enqueue(fail.options(queue="few", max_attempts=1))
    fleet.start(**HERE, name="w1", queues="other")
    assert operator.causes(job) == ["no worker for queue", "paused"]

    fleet.start(**HERE, name="w2", queues="few")
    assert operator.causes(job) == ["paused"]

    operator.type(*operator.why(job)["command"].split()[1:])
    board.until_state(job, State.DEAD)
    found = operator.why(job)
    assert (found["cause"], found["command"]) == ("dead", f"jobq retry {job}")
    assert found["words"].endswith(": err: ValueError: no such card")
