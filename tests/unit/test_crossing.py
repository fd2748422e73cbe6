"""What crosses between a worker and its children: as JSON, and as what it was."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import jobq
from jobq.backoff import ByError
from jobq.describe import class_name, describe, message_of
from jobq.executors.process import wire
from jobq.executors.process.crossing import end_from_wire, end_to_wire, job_from_wire, job_to_wire
from jobq.model import Claimed
from jobq.pausing import status_of
from jobq.verdict import Ended, judge


class Declined(ValueError):
    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code)
        self.reason = reason

    def __str__(self) -> str:
        return f"declined: {self.reason}"


class Response:
    status_code = 429


class HTTPError(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__("too many")
        self.response = response


class Picky(Exception):
    def __new__(cls, one: int, two: object) -> Picky:
        return super().__new__(cls)

    def __init__(self, one: int, two: object) -> None:
        super().__init__(one, two)


class Sealed(Exception):
    def __init_subclass__(cls, **_: Any) -> None:
        raise TypeError("no heirs")

    def __str__(self) -> str:
        return f"sealed by {self.by}"  # type: ignore[attr-defined]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


NOTHING_ELSE = {"message": "no", "traceback": "", "args": None, "attributes": {}, "status": None}


def crossed(ended: Ended) -> Ended:
    return end_from_wire(json.loads(wire.pack(end_to_wire(ended))[4:]))


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        again = crossed(Ended(error=caught)).error
    assert again is not None
    return again


def sealed() -> Sealed:
    error = Sealed()
    error.by = {"a": 1}  # type: ignore[attr-defined]
    return error


def test_a_job_crosses_as_it_was_claimed() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 5, UTC)
    job = Claimed(7, 2, "q", "k", '{"n": 1}', 1, at, 1, None, "{}", at, "(0,1)", 1 << 62, at, 3, True)

    assert job_from_wire(json.loads(wire.pack(job_to_wire(job))[4:])) == job


@pytest.mark.parametrize(
    "value", [None, "", "text", "\ud800\x00\n", jobq.Ok("a"), jobq.Fail("b"), jobq.Skip()], ids=ascii
)
def test_what_a_handler_returned_crosses_as_it_is(value: Any) -> None:
    assert crossed(Ended(value)) == Ended(value)


def test_a_hundred_megabytes_are_cut() -> None:
    value = crossed(Ended("x" * 100_000_000)).value

    assert len(value) < 1_100_000
    assert "(99000000 characters left out)" in value


ERRORS = {
    "builtin": (KeyError("k"), KeyError, "'k'"),
    "os": (OSError(2, "gone", "/a"), FileNotFoundError, "[Errno 2] gone: '/a'"),
    "own_init": (Declined(7, reason="no money"), Declined, "declined: no money"),
    "own_new": (Picky(1, 2), Picky, "(1, 2)"),
    "args_that_cannot_cross": (Picky(1, object), Exception, None),
    "no_heirs": (sealed(), Exception, "sealed by {'a': 1}"),
    "mute": (Mute(), Mute, "<no text: __str__ raised RuntimeError>"),
    "group": (ExceptionGroup("two", [ValueError("1")]), Exception, "two (1 sub-exception)"),
    "exit": (SystemExit(3), SystemExit, "3"),
    "unicode": (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ValueError, None),
    "decimal": (OverflowError(1 << 70), OverflowError, str(1 << 70)),
}


@pytest.mark.parametrize(("error", "kind", "text"), ERRORS.values(), ids=ERRORS)
def test_an_error_keeps_its_class_its_text_and_its_traceback(
    error: BaseException, kind: type[BaseException], text: str | None
) -> None:
    again = raised(error)

    assert isinstance(again, kind)
    assert (class_name(again), message_of(again)) == (class_name(error), message_of(error) if text is None else text)
    assert "raise error" in describe(again, attempt=1, worker="w")["traceback"]


def test_an_error_of_a_class_that_the_worker_has_not_loaded_is_not_imported() -> None:
    told = {
        "classes": [["wave", "Error"], ["builtins", "ValueError"], ["builtins", "Exception"]],
        **NOTHING_ELSE,
    }
    assert "wave" not in sys.modules

    error = end_from_wire({"error": told}).error

    assert isinstance(error, ValueError)
    assert (class_name(error), str(error), "wave" in sys.modules) == ("wave.Error", "no", False)


@pytest.mark.parametrize("name", [["os", "system"], ["builtins", "int"], ["jobq", "enqueue"], ["", ""], ["os", "a.b"]])
def test_a_name_that_is_no_exception_is_passed_over(name: list[str]) -> None:
    error = end_from_wire({"error": {"classes": [name, ["builtins", "Exception"]], **NOTHING_ELSE}}).error

    assert type(error).__mro__[1] is Exception


def test_policies_decide_as_they_would_have_where_it_was_raised() -> None:
    policy = ByError({Declined: lambda failures, error: timedelta(minutes=error.reason == "no money")})  # type: ignore[attr-defined]
    error = raised(Declined(7, reason="no money"))

    assert judge(Ended(error=error), failures=0, max_attempts=5, retry=policy).delay == timedelta(minutes=1)
    assert status_of(raised(HTTPError(Response()))) == 429


def test_signals_cross_with_their_times() -> None:
    snooze, pause = raised(jobq.Snooze(timedelta(hours=2))), raised(jobq.PauseQueue(timedelta(hours=1), "quota"))

    assert isinstance(snooze, jobq.Snooze)
    assert isinstance(pause, jobq.PauseQueue)
    assert (snooze.delay, pause.duration, pause.reason) == (timedelta(hours=2), timedelta(hours=1), "quota")


BROKEN = {
    "ended": b"",
    "half_a_length": b"\x00\x00",
    "half_a_message": b"\x00\x00\x00\x05{}",
    "too_long": b"\xff\xff\xff\xff",
    "no_json": b"\x00\x00\x00\x01{",
    "no_object": b"\x00\x00\x00\x02[]",
}


@pytest.mark.parametrize("sent", BROKEN.values(), ids=BROKEN)
def test_whoever_does_not_speak_the_language_is_taken_for_gone(sent: bytes) -> None:
    async def ask() -> None:
        stream = asyncio.StreamReader()
        stream.feed_data(sent)
        stream.feed_eof()
        with pytest.raises(wire.Ended):
            await wire.receive(stream)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises(wire.Ended):
            wire.receive_in_thread(theirs)
    asyncio.run(ask())
