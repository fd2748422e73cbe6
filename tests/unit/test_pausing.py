"""Which errors let a queue stand still."""

from __future__ import annotations

import urllib.error
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from jobq import PauseQueue, http_status
from jobq.errors import OptionError, OptionTypeError
from jobq.pausing import pause_after, status_of

HOUR = timedelta(hours=1)


def error_with(**attributes: Any) -> Exception:
    error = RuntimeError("no")
    vars(error).update(attributes)
    return error


class NoResponse(Exception):
    """As httpx: asking for what is not there yet raises."""

    @property
    def response(self) -> object:
        raise RuntimeError("there is no response")


ERRORS: dict[str, tuple[BaseException | None, int | None]] = {
    "httpx, requests": (error_with(response=SimpleNamespace(status_code=403)), 403),
    "aiohttp": (error_with(status=401, message="Unauthorized"), 401),
    "urllib": (urllib.error.HTTPError("http://a", 429, "Too Many", Message(), None), 429),
    "a code alone": (error_with(code=401), 401),
    "requests without a response": (error_with(response=None), None),
    "httpx without a response": (NoResponse("no"), None),
    "a code of somebody else's": (error_with(code="E_AUTH", status="failed"), None),
    "a bool": (error_with(status=True), None),
    "out of range": (error_with(code=7), None),
    "a response before a code": (error_with(response=SimpleNamespace(status_code=500), code=401), 500),
    "no status": (ValueError("403"), None),
    "no error": (None, None),
}


@pytest.mark.parametrize(("error", "status"), ERRORS.values(), ids=ERRORS)
def test_the_status_of_an_error_is_found_by_its_attributes(error: BaseException | None, status: int | None) -> None:
    assert status_of(error) == status


def test_a_pause_by_status_says_which() -> None:
    pause_on = http_status({401, 403}, HOUR)

    pause = pause_on(error_with(status=403))
    assert pause is not None
    assert (pause.duration, pause.reason) == (HOUR, "HTTP 403")
    assert pause_on(error_with(status=404)) is None
    assert pause_on(ValueError("403")) is None


WRONG: dict[str, tuple[Any, Any, type[Exception]]] = {
    "no status": ([], HOUR, OptionError),
    "one status": (401, HOUR, OptionTypeError),
    "a text": (["401"], HOUR, OptionTypeError),
    "out of range": ([42], HOUR, OptionError),
    "seconds": ([401], 3600, OptionTypeError),
    "no time": ([401], timedelta(0), OptionError),
    "for ever": ([401], timedelta.max, OptionError),
}


@pytest.mark.parametrize(("statuses", "duration", "error"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_refused_at_once(statuses: Any, duration: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        http_status(statuses, duration)


def test_an_answer_is_a_span_a_pause_or_nothing() -> None:
    given = PauseQueue(HOUR, "why")

    assert pause_after(lambda error: None, ValueError()) is None
    assert pause_after(lambda error: given, ValueError()) is given
    assert getattr(pause_after(lambda error: HOUR, ValueError()), "duration", None) == HOUR


@pytest.mark.parametrize("answer", [3600, "1h", True, timedelta(0), timedelta.max])
def test_any_other_answer_is_an_error(answer: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="PauseQueue takes"):
        pause_after(lambda error: answer, ValueError())


@pytest.mark.parametrize("duration", [timedelta(0), -HOUR, timedelta(days=3651)])
def test_a_pause_lasts_longer_than_nothing(duration: timedelta) -> None:
    with pytest.raises(ValueError, match="PauseQueue takes"):
        PauseQueue(duration)


def test_a_pause_takes_a_span_and_a_text() -> None:
    wrong: Any = 5
    for arguments in ((wrong,), (HOUR, wrong)):
        with pytest.raises(TypeError, match="PauseQueue takes"):
            PauseQueue(*arguments)
    assert str(PauseQueue(HOUR)) == "paused for 1:00:00"
