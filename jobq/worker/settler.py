"""Decides what a job becomes whose handler has ended, and passes the decision on to be written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Protocol

from jobq.describe import as_json, describe, release_frames, storable
from jobq.events import ErrorCallback, ErrorEvent, tell
from jobq.model import State
from jobq.outcomes import Outcome, Signal
from jobq.pausing import pause_after
from jobq.retention import kept_for
from jobq.store.ending import Ending, Fence
from jobq.throttle import wait_after
from jobq.verdict import Ended, Verdict, judge, judge_value
from jobq.worker.held import TAKEN, Held, HeldJobs, Stop
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")


class Ends(Protocol):
    """Where decisions go, to be written: the Completer."""

    def add(self, held: Held, ending: Ending, verdict: Verdict) -> None: ...

    def done(self, held: Held) -> None: ...

    def free_slot(self, held: Held) -> None: ...


class Settler:
    """Called once a job. An exception is described, reported, and then let go of with all that it keeps alive."""

    def __init__(
        self,
        completer: Ends,
        counters: Counters,
        held: HeldJobs,
        keep_slot: Callable[[Fence, timedelta], bool],
        *,
        name: str,
        callbacks: Callable[[], Sequence[ErrorCallback]],
    ) -> None:
        self._completer = completer
        self._counters = counters
        self._held = held
        self._keep_slot = keep_slot
        self._name = name
        self._callbacks = callbacks

    def settle(self, held: Held, ended: Ended) -> None:
        """Decide, and let go of the exception."""
        if ended.error is None and held.stop is None and held.job.slot is None and not held.completed:
            verdict = judge_value(ended.value)
            if verdict.result is None:
                held.outcome = verdict.outcome
                self._completer.done(held)
                return
        self.decide(held, ended)
        if ended.error is not None:
            release_frames(ended.error)

    def decide(self, held: Held, ended: Ended) -> None:
        """What was lost is dropped; what a shutdown has stopped stays held, to be given back when the worker leaves."""
        if held.completed:
            self._after_completion(held, _in_time(held, ended))
        elif held.stop in TAKEN:
            self._drop(held)
        elif held.stop is not Stop.SHUTDOWN or ended.error is None:
            self._judge(held, _in_time(held, ended))
        elif held.job.slot is not None:
            self._keep_slot(held.fence, timedelta(0))

    def _judge(self, held: Held, ended: Ended) -> None:
        ended = self._or_paused(held, ended)
        verdict = judge(
            ended,
            failures=held.job.failures,
            max_attempts=held.max_attempts,
            retry=held.handler.settings.retry,
            no_retry_on=held.handler.settings.no_retry_on,
        )
        error = None
        if ended.error is not None and verdict.counted:
            error = as_json(describe(ended.error, attempt=held.job.attempt, worker=self._name))
            self._report(held, ended.error, final=verdict.state is State.DEAD)
        keep = kept_for(verdict.state, held.keep)
        ending = Ending(held.fence, verdict.state, verdict.outcome, error, verdict.delay, keep, result=verdict.result)
        if verdict.pause is not None:
            reason = storable(verdict.pause.reason) or None
            ending = replace(ending, pause=verdict.pause.duration, pause_reason=reason)
        if held.job.slot is not None:
            ending = self._with_slot(held, ending, verdict, ended.error)
        self._completer.add(held, ending, verdict)

    def _with_slot(self, held: Held, ending: Ending, verdict: Verdict, error: BaseException | None) -> Ending:
        """With its slot freed, unless its handler still runs. In a FIFO queue the slot waits in place of the job."""
        wait = self._wait(held, verdict, error)
        if verdict.counted and held.job.in_order and ending.delay is not None:
            wait, ending = max(wait, ending.delay), replace(ending, delay=None)
        return ending if self._keep_slot(held.fence, wait) else replace(ending, slot_wait=wait)

    def _wait(self, held: Held, verdict: Verdict, error: BaseException | None) -> timedelta:
        """What the queue's throttle says; one that is broken is reported, and no reason to lose a job."""
        if held.queue.throttle is None:
            return timedelta(0)
        elapsed = timedelta(seconds=monotonic() - held.started)
        try:
            return wait_after(held.queue.throttle, verdict.outcome or verdict.word, error, elapsed)
        except BaseException as problem:  # a SystemExit from here would end the worker's loop
            self._report_broken(held, "throttle", problem)
            return timedelta(0)

    def _or_paused(self, held: Held, ended: Ended) -> Ended:
        """How it ended; as a PauseQueue when the queue's `pause_on` makes one of the error."""
        error = ended.error
        if held.queue.pause_on is None or not isinstance(error, Exception) or isinstance(error, Signal):
            return ended
        try:
            pause = pause_after(held.queue.pause_on, error)
        except BaseException as problem:
            self._report_broken(held, "pause_on", problem)
            return ended
        if pause is None:
            return ended
        pause.__cause__ = error
        return Ended(error=pause)

    def _report_broken(self, held: Held, what: str, problem: BaseException) -> None:
        logger.error("queue %s: its %s failed", held.job.queue, what, exc_info=problem)
        self._report(held, problem, final=False)
        release_frames(problem)

    def _drop(self, held: Held) -> None:
        is_cancelled = held.stop is Stop.CANCELLED
        self._counters.lost += 1
        self._counters.cancelled += is_cancelled
        logger.log(
            logging.INFO if is_cancelled else logging.WARNING,
            "job %d (%s): %s %s attempt %d %s; nothing is written",
            held.job.id,
            held.job.kind,
            "cancelled by hand" if is_cancelled else "lost to another hand",
            "while" if held.task else "before",
            held.job.attempt,
            "ran" if held.task else "began",
        )
        if held.job.slot is None or self._keep_slot(held.fence, timedelta(0)):
            self._held.drop(held)
        else:
            self._completer.free_slot(held)

    def _after_completion(self, held: Held, ended: Ended) -> None:
        """The job was completed by its own transaction: a text may follow, an error is only reported."""
        if ended.error is not None and held.stop not in (Stop.SHUTDOWN, *TAKEN):
            logger.error("job %d (%s): raised after it had completed", held.job.id, held.job.kind, exc_info=ended.error)
            self._report(held, ended.error, final=True)
        value = ended.value if isinstance(ended.value, (str, Outcome)) else None
        verdict = judge(Ended(value), failures=0, max_attempts=1, retry=held.handler.settings.retry)
        ending = Ending(held.fence, State.DONE, verdict.outcome, result=verdict.result)
        if held.job.slot is not None:
            ending = self._with_slot(held, ending, verdict, ended.error)
        self._completer.add(held, ending, verdict)

    def _report(self, held: Held, error: BaseException, *, final: bool) -> None:
        tell(self._callbacks(), ErrorEvent(held.view, error, held.job.attempt, final))


def _in_time(held: Held, ended: Ended) -> Ended:
    """How it ended, past its timeout a TimeoutError whatever the handler made of its cancellation."""
    if held.stop is not Stop.TIMEOUT:
        return ended
    return Ended(error=TimeoutError(f"took longer than its timeout of {held.timeout}"))
