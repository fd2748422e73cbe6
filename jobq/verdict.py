"""What becomes of a job whose handler has ended: a pure decision."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from jobq.backoff import NoRetryOn, RetryPolicy, delay_after
from jobq.describe import class_name, message_of, storable
from jobq.errors import ArgsError
from jobq.model import State
from jobq.outcomes import Ok, Outcome, PauseQueue, Permanent, Snooze

ENDS_WELL = frozenset({"ok", "fail", "skip"})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a handler ended: what it returned, or what it raised."""

    value: Any = None
    error: BaseException | None = None


def word_of(outcome: str | None) -> str:
    """The first word of a done job's text: ok, fail, skip."""
    return "ok" if outcome is None else outcome.partition(":")[0]


NOTHING = Ended()  # what most handlers return


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state that a job goes to; `delay` is counted by the database, None leaves run_at as it is.

    `counted`: the error counts as a failure and is kept in the job's history. `pause`: its queue stands still.
    `result`: the JSON text of what the handler gave to programs.
    """

    state: State
    outcome: str | None = None
    delay: timedelta | None = None
    counted: bool = False
    pause: PauseQueue | None = None
    result: str | None = None

    @property
    def word(self) -> str:
        """One word for logs and counters: ok, fail, skip, retry, dead, snooze, pause."""
        if self.state is State.DONE:
            return word_of(self.outcome)
        if self.state is State.DEAD:
            return "dead"
        if self.pause is not None:
            return "pause"
        return "retry" if self.counted else "snooze"


DONE = Verdict(State.DONE)


def judge(
    ended: Ended, *, failures: int, max_attempts: int, retry: RetryPolicy, no_retry_on: NoRetryOn = ()
) -> Verdict:
    """`failures` is the number before this attempt."""
    error = ended.error
    if error is None:
        return judge_value(ended.value)
    if isinstance(error, Snooze):
        return Verdict(State.PENDING, delay=error.delay)
    if isinstance(error, PauseQueue):
        return Verdict(State.PENDING, pause=error)
    outcome = storable(f"err: {class_name(error)}: {message_of(error)}")
    if _is_final(error, no_retry_on) or failures + 1 >= max_attempts:
        return Verdict(State.DEAD, outcome, counted=True)
    delay = delay_after(retry, failures + 1, error)
    if delay is None:
        return Verdict(State.DEAD, outcome, counted=True)
    return Verdict(State.PENDING, outcome, delay=delay, counted=True)


def _is_final(error: BaseException, no_retry_on: NoRetryOn) -> bool:
    """Whether no retry would mend it. As `except` decides: by the classes alone, nothing of the user's is called."""
    return any(kind in (Permanent, ArgsError, *no_retry_on) for kind in type(error).__mro__)


def check_value(value: Any) -> Ended:
    """What a handler returned as its end: a value of no outcome's type is an error that no retry would mend."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return Ended(str.__str__(value))  # of a str Enum its value; a subclass's own __str__ may raise
    if isinstance(value, Outcome) and _is_sound(value):
        return Ended(value)
    if inspect.isawaitable(value):
        close = getattr(value, "close", None)
        if close is not None:
            close()  # else Python warns that it was never awaited
        return Ended(error=Permanent("the handler returned an awaitable, not its value: await it, in an async def"))
    return Ended(error=Permanent(f"a handler returns None, a str or an Outcome, this one {type(value).__name__}"))


def _is_sound(outcome: Outcome) -> bool:
    """Whether a subclass has left alone what every count reads: a word of jobq's own, and a text."""
    result = getattr(outcome, "result_json", None)
    is_ours = outcome.word in ENDS_WELL and isinstance(getattr(outcome, "text", None), str)
    return is_ours and (result is None or isinstance(result, str))


def judge_value(value: Any) -> Verdict:
    """What `check_value` has let pass, as a job's end."""
    if value is None:
        return DONE
    outcome = value if isinstance(value, Outcome) else Ok(str(value))
    result = getattr(outcome, "result_json", None)  # of a subclass that has never called our __init__
    return Verdict(State.DONE, storable(Outcome.__str__(outcome)), result=result)
