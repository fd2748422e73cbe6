"""What a handler may return or raise, and the one place that writes and reads an outcome's text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from jobq.codec.values import json_text

Word: TypeAlias = Literal["ok", "fail", "skip", "err"]
WORDS: tuple[Word, ...] = get_args(Word)
MOST_RESULT_BYTES = 64 * 1024
Json: TypeAlias = "Mapping[str, Any] | list[Any] | tuple[Any, ...] | str | float | bool | None"


class Outcome:
    """How a job ended, as the handler tells it: one of Ok, Fail, Skip, with a text for people.

    `result`: a plain JSON value for programs, at most 64 KiB of JSON, `jobq.get(...).result`; None: there is none. It
    is taken as it is now.

    Raises: ArgsError, for a result that is larger or no JSON; the job is dead then, no retry would mend it.
    """

    word: Word = "ok"

    def __init__(self, text: str = "", *, result: Json = None) -> None:
        if not isinstance(text, str):
            raise TypeError(f"{type(self).__name__} takes a str, got {type(text).__name__}")
        self.text = text
        self.result_json = None if result is None else json_text(result, path="result", most_bytes=MOST_RESULT_BYTES)

    def __str__(self) -> str:
        return f"{self.word}: {self.text}" if self.text else self.word

    def __repr__(self) -> str:
        result = "" if self.result_json is None else f", result={self.result_json}"
        return f"{type(self).__name__}({self.text!r}{result})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), self.text, self.result_json))


class Ok(Outcome):
    """Done, with something to say: what returning a str means."""


class Fail(Outcome):
    """Done with a negative answer that a retry would not change; counted as fail, not retried."""

    word = "fail"


class Skip(Outcome):
    """Done: there was nothing to attempt; counted as skip, not retried."""

    word = "skip"


Result: TypeAlias = "Outcome | str | None"


def read_outcome(text: str | None) -> Word:
    """The word that an outcome's stored text begins with; every count goes through here.

    A finished job without a text ended well: `ok`.
    """
    first = (text or "ok").partition(":")[0]
    return first if first in WORDS else "err"


class Signal(Exception):
    """Raised by a handler to say what becomes of the job; not an error."""


class Permanent(Signal):
    """Do not retry: the job is dead at once."""


LONGEST_PAUSE = timedelta(days=3650)


class PauseQueue(Signal):
    """Let the job's queue stand still for `duration`, in the whole fleet; this job goes back, no attempt is used.

    A pause that lasts longer already stays as it is.
    """

    def __init__(self, duration: timedelta, reason: str = "") -> None:
        if not isinstance(duration, timedelta):
            raise TypeError(f"PauseQueue takes a timedelta, got {type(duration).__name__}")
        if not isinstance(reason, str):
            raise TypeError(f"PauseQueue takes a str as its reason, got {type(reason).__name__}")
        if not timedelta(0) < duration <= LONGEST_PAUSE:
            raise ValueError(f"PauseQueue takes more than 0 and at most {LONGEST_PAUSE.days} days, got {duration}")
        super().__init__(reason or f"paused for {duration}")
        self.duration = duration
        self.reason = reason


class Snooze(Signal):
    """Run again after `delay` (0 or more, counted by the database's clock); no attempt is used."""

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        if not isinstance(delay, timedelta):
            raise TypeError(f"Snooze takes a timedelta, got {type(delay).__name__}")
        if delay < timedelta(0):
            raise ValueError(f"Snooze takes a delay of 0 or more, got {delay}")
        super().__init__(reason or f"snoozed for {delay}")
        self.delay = delay
        self.reason = reason
