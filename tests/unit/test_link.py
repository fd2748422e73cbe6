from __future__ import annotations

import logging

import pytest
from worker_values import Clock

from jobq.events import ErrorEvent
from jobq.worker.link import LONGEST_PAUSE_SECONDS, Link

LOST = ConnectionResetError("reset by peer")


class Told:
    """An application's on_error: keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[ErrorEvent] = []

    def __call__(self, event: ErrorEvent) -> None:
        self.events.append(event)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def link(clock: Clock, told: Told, caplog: pytest.LogCaptureFixture) -> Link:
    caplog.set_level(logging.DEBUG, "jobq")
    return Link(lambda: [told], clock)


def test_one_run_of_failures_of_all_services_is_said_once_and_its_end_once(
    link: Link, clock: Clock, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    for service in ("claimer", "claimer", "heartbeat", "claimer", "rescuer"):
        link.failed(service, LOST)
    clock.now += 12.25
    for service in ("claimer", "heartbeat", "completer", "rescuer", "claimer"):
        link.worked(service)

    assert caplog.messages == [
        "the database cannot be used by the claimer: reset by peer; trying again",
        "the database can be used again after 12.2 s",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert told.events == [ErrorEvent(job=None, error=LOST, attempt=None, final=False)]


def test_the_next_success_arms_the_word_again(link: Link, told: Told, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        link.failed("claimer", LOST)
        link.worked("claimer")

    assert len(told.events) == 3
    assert len(caplog.records) == 6


def test_a_success_of_another_service_ends_nothing(link: Link, told: Told, caplog: pytest.LogCaptureFixture) -> None:
    link.failed("listener", LOST)
    link.worked("claimer")
    link.failed("listener", LOST)

    assert len(caplog.records) == 1
    assert len(told.events) == 1
    assert link.away_for is not None


def test_it_is_known_how_long_the_database_has_been_away(link: Link, clock: Clock) -> None:
    assert link.away_for is None

    link.failed("claimer", LOST)
    clock.now += 30
    link.failed("heartbeat", LOST)
    clock.now += 30
    assert link.away_for is not None
    assert link.away_for.total_seconds() == 60

    link.worked("claimer")
    assert link.away_for is not None
    link.worked("heartbeat")
    assert link.away_for is None


def test_success_without_a_failure_is_no_news(link: Link, told: Told, caplog: pytest.LogCaptureFixture) -> None:
    link.worked("claimer")

    assert not caplog.records
    assert not told.events


def test_pauses_grow_with_jitter_from_a_twentieth_of_a_second_to_two(link: Link) -> None:
    pauses = [link.failed("claimer", LOST) for _ in range(2_000)]

    assert 0.05 <= pauses[0] <= 0.1
    assert 0.1 <= pauses[1] <= 0.2
    assert 0.4 <= pauses[3] <= 0.8
    assert all(1.0 <= pause <= LONGEST_PAUSE_SECONDS for pause in pauses[5:])
    assert len(set(pauses)) > 1_000


def test_each_service_backs_off_by_its_own_failures(link: Link) -> None:
    for _ in range(10):
        link.failed("claimer", LOST)

    assert link.failed("heartbeat", LOST) <= 0.1


def test_an_application_whose_callback_raises_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: ErrorEvent) -> None:
        raise RuntimeError("a callback with a bug")

    told = Told()
    link = Link(lambda: [broken, told])

    assert link.failed("claimer", LOST) > 0
    assert len(told.events) == 1
    assert "an on_error, on_end or on_ends callback raised" in caplog.text


def test_what_works_for_a_moment_only_waits_longer_each_time(link: Link, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        pauses.append(link.failed("listener", LOST))
        clock.now += 0.1
        link.worked("listener")
        clock.now += 0.1

    assert pauses[0] <= 0.1
    assert pauses[-1] >= LONGEST_PAUSE_SECONDS / 2


def test_what_has_worked_for_a_while_is_at_its_first_failure_again(link: Link, clock: Clock) -> None:
    for _ in range(8):
        link.failed("listener", LOST)
    link.worked("listener")
    clock.now += 1

    assert link.failed("listener", LOST) <= 0.1
