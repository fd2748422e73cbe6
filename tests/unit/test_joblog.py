from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from worker_values import NOON, WORKER, Clock, claimed, held_of

from jobq.worker.held import Held
from jobq.worker.joblog import MOST_A_SECOND, JobLog, one_line


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, caplog: pytest.LogCaptureFixture) -> JobLog:
    caplog.set_level(logging.DEBUG, "jobq.job")
    return JobLog(clock)


def one(id_: int = 42, **values: Any) -> Held:
    return held_of(claimed(id_, **values))


@pytest.mark.parametrize(
    ("word", "text", "level", "said"),
    [
        ("ok", None, logging.INFO, "ok"),
        ("ok", "ok: sent", logging.INFO, "ok: sent"),
        ("fail", "fail: no match", logging.INFO, "fail: no match"),
        ("skip", "skip", logging.INFO, "skip"),
        ("snooze", None, logging.INFO, "snooze"),
        ("retry", "err: ValueError: no", logging.WARNING, "retry: err: ValueError: no"),
        ("dead", "err: ValueError: no", logging.ERROR, "dead: err: ValueError: no"),
    ],
)
def test_a_job_that_ended_has_one_line(
    log: JobLog, clock: Clock, caplog: pytest.LogCaptureFixture, word: str, text: str | None, level: int, said: str
) -> None:
    held = one(attempt=3)
    clock.now += 0.25

    log.ended(held, word, text)

    (record,) = caplog.records
    assert record.levelno == level
    assert record.getMessage() == f"email email.send 42 attempt 3: {said} (waited 1.500 s, took 0.250 s)"


def test_the_fields_of_a_line_are_there_for_machines(
    log: JobLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    held = one(attempt=3)
    clock.now += 0.25

    log.ended(held, "skip", "skip: fresh")

    fields = {"queue", "kind", "job_id", "attempt", "outcome", "wait", "duration", "worker_id"}
    assert {name: vars(caplog.records[0])[name] for name in fields} == {
        "queue": "email",
        "kind": "email.send",
        "job_id": 42,
        "attempt": 3,
        "outcome": "skip: fresh",
        "wait": 1.5,
        "duration": 0.25,
        "worker_id": WORKER,
    }


def test_the_outcome_of_a_job_without_a_text_is_its_word(log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    log.ended(one(), "snooze", None)

    assert vars(caplog.records[0])["outcome"] == "snooze"


def test_a_clock_that_was_set_back_gives_no_negative_wait(log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    log.ended(one(claimed_at=NOON - timedelta(seconds=4)), "ok", None)

    assert vars(caplog.records[0])["wait"] == 0.0


def test_past_a_hundred_a_second_good_ends_go_to_debug_and_that_is_said_once(
    log: JobLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(3):
        clock.now = 1_000.0 + second
        for _ in range(MOST_A_SECOND + 50):
            log.ended(one(), "ok", None)

    lines = [record for record in caplog.records if hasattr(record, "job_id")]
    others = [record for record in caplog.records if not hasattr(record, "job_id")]
    assert [record.levelno for record in lines] == ([logging.INFO] * MOST_A_SECOND + [logging.DEBUG] * 50) * 3
    assert [record.getMessage() for record in others] == [
        "more than 100 jobs a second: further good ends are logged at DEBUG"
    ]


def test_bad_ends_are_never_held_back(log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(MOST_A_SECOND + 50):
        log.ended(one(), "retry", "err: ValueError: no")
    log.ended(one(), "ok", None)

    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.WARNING] * (MOST_A_SECOND + 50) + [logging.INFO]


def test_nothing_is_made_of_a_line_that_nobody_wants(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "jobq.job")

    JobLog(Clock()).ended(one(), "ok", None)

    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("first\nsecond\r\nthird", "first second  third"),
        ("\x1b[31mred\x1b[0m", " [31mred [0m"),
        ("tab\there\x00\x07", "tab here  "),
        ("\u2028\u202egnp.exe", "  gnp.exe"),
        ("\ud800", " "),
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600"),
        ("x" * 400, "x" * 300 + " ..."),
    ],
    ids=ascii,
)
def test_text_of_a_handlers_making_is_one_printable_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_control_characters_of_an_error_do_not_reach_the_line(log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    log.ended(one(), "retry", "err: ValueError: \x1b]0;owned\x07\nINFO forged line")

    assert caplog.records[0].getMessage().isprintable()
