from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from worker_values import claimed

from jobq import model
from jobq.context import Context, Transaction, current, enter, view_of
from jobq.errors import ContextError
from jobq.model import ENDED, OPEN, State

VALUES = [each for each in vars(model).values() if dataclasses.is_dataclass(each) and isinstance(each, type)]


def test_a_state_is_open_or_ended() -> None:
    assert set(State) == OPEN | ENDED
    assert not OPEN & ENDED


def test_a_state_is_its_word() -> None:
    assert [str(state) for state in State] == ["pending", "running", "done", "dead", "cancelled"]
    assert State("dead") is State.DEAD


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_values_are_frozen_and_small(kind: type) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(kind)


def test_a_claimed_job_knows_its_lane() -> None:
    assert claimed(queue="email", priority=0).lane == ("email", 0)


@pytest.mark.parametrize(("failures", "most", "is_last"), [(0, 1, True), (0, 2, False), (1, 2, True), (9, 2, True)])
def test_the_last_attempt_is_the_one_whose_failure_makes_the_job_dead(failures: int, most: int, is_last: bool) -> None:
    assert view_of(claimed(failures=failures), max_attempts=most).is_last is is_last


def test_a_handler_sees_the_job_as_it_was_claimed() -> None:
    run_at = datetime(2026, 1, 1, tzinfo=UTC)
    view = view_of(claimed(9, attempt=3, failures=1, run_at=run_at, priority=2), max_attempts=4)

    assert (view.id, view.kind, view.queue, view.priority) == (9, "email.send", "email", 2)
    assert (view.attempt, view.failures, view.max_attempts) == (3, 1, 4)
    assert view.run_at == run_at


def test_there_is_no_current_job_outside_of_one() -> None:
    with pytest.raises(ContextError, match="no job is running here"):
        current()


def test_a_context_opens_the_transaction_of_its_worker_and_can_be_told_to_stop() -> None:
    opened = Transaction()
    context = Context(view_of(claimed(), max_attempts=5), {"db": 1}, lambda: opened)

    assert context.transaction() is opened
    assert context.state == {"db": 1}
    assert not context.cancelled
    context.cancel()
    assert context.cancelled


def test_an_entered_context_is_the_current_one_of_this_copy_of_the_variables() -> None:
    from contextvars import copy_context

    context = Context(view_of(claimed(), max_attempts=5), None, Transaction)
    copy = copy_context()

    copy.run(enter, context)

    assert copy.run(current) is context
    with pytest.raises(ContextError):
        current()


def test_a_transaction_that_no_executor_supports_says_so() -> None:
    with pytest.raises(ContextError, match="does not support it"), Transaction():
        pass
