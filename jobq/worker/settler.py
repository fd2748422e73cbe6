"""Decides what a job becomes whose handler has ended, and passes the decision on to be written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from jobq.describe import as_json, describe, release_frames
from jobq.events import ErrorCallback, ErrorEvent, tell
from jobq.model import State
from jobq.outcomes import Outcome
from jobq.retention import kept_for
from jobq.store.ending import Ending
from jobq.verdict import Ended, judge
from jobq.worker.completer import Completer
from jobq.worker.held import Held, HeldJobs, Stop
from jobq.worker.stats import Counters

logger = logging.getLogger("jobq.worker")


class Settler:
    """Called once a job. An exception is described, reported, and then let go of with all that it keeps alive."""

    def __init__(
        self,
        completer: Completer,
        counters: Counters,
        held: HeldJobs,
        *,
        name: str,
        callbacks: Callable[[], Sequence[ErrorCallback]],
    ) -> None:
        self._completer = completer
        self._counters = counters
        self._held = held
        self._name = name
        self._callbacks = callbacks

    def settle(self, held: Held, ended: Ended) -> None:
        """What was lost is dropped; what a shutdown has stopped stays held, to be given back when the worker leaves."""
        if held.completed:
            self._after_completion(held, _in_time(held, ended))
        elif held.stop is Stop.LOST:
            self._drop(held)
        elif held.stop is not Stop.SHUTDOWN or ended.error is None:
            self._judge(held, _in_time(held, ended))
        if ended.error is not None:
            release_frames(ended.error)

    def _judge(self, held: Held, ended: Ended) -> None:
        verdict = judge(
            ended,
            failures=held.job.failures,
            max_attempts=held.max_attempts,
            retry=held.handler.settings.retry,
        )
        error = None
        if ended.error is not None and verdict.counted:
            error = as_json(describe(ended.error, attempt=held.job.attempt, worker=self._name))
            self._report(held, ended.error, final=verdict.state is State.DEAD)
        keep = kept_for(verdict.state, held.keep)
        self._completer.add(
            held, Ending(held.fence, verdict.state, verdict.outcome, error, verdict.delay, keep), verdict
        )

    def _drop(self, held: Held) -> None:
        self._counters.lost += 1
        logger.warning(
            "job %d (%s): lost to another hand while attempt %d ran; stopped, nothing is written",
            held.job.id,
            held.job.kind,
            held.job.attempt,
        )
        self._held.drop(held)

    def _after_completion(self, held: Held, ended: Ended) -> None:
        """The job was completed by its own transaction: a text may follow, an error is only reported."""
        if ended.error is not None and held.stop not in (Stop.SHUTDOWN, Stop.LOST):
            logger.error("job %d (%s): raised after it had completed", held.job.id, held.job.kind, exc_info=ended.error)
            self._report(held, ended.error, final=True)
        value = ended.value if isinstance(ended.value, (str, Outcome)) else None
        verdict = judge(Ended(value), failures=0, max_attempts=1, retry=held.handler.settings.retry)
        self._completer.add(held, Ending(held.fence, State.DONE, verdict.outcome), verdict)

    def _report(self, held: Held, error: BaseException, *, final: bool) -> None:
        tell(self._callbacks(), ErrorEvent(held.view, error, held.job.attempt, final))


def _in_time(held: Held, ended: Ended) -> Ended:
    """How it ended, past its timeout a TimeoutError whatever the handler made of its cancellation."""
    if held.stop is not Stop.TIMEOUT:
        return ended
    return Ended(error=TimeoutError(f"took longer than its timeout of {held.timeout}"))
