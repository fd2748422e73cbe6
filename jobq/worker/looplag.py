"""Says which handler blocks the event loop, and where it is: from a thread, since the loop itself cannot."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from types import FrameType
from typing import Any

from jobq.worker.held import HeldJobs

logger = logging.getLogger("jobq.worker")
LOOK_SECONDS = 0.5  # between two questions to the loop; each costs an idle worker two wake-ups
LIMIT_SECONDS = 1.0
QUIET_SECONDS = 60.0  # a kind that blocks again and again is warned of so often
FRAMES = 12
CALLERS = frozenset({"asyncio.events", "jobq.executors.coroutine"})


class LoopWatch:
    """Asks the loop twice a second to answer. `blocks`: how often it took a second or more; `longest` of them."""

    def __init__(self, held: HeldJobs) -> None:
        self.blocks = 0
        self.longest = timedelta(0)
        self._held = held
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._answered = threading.Event()
        self._stop = threading.Event()
        self._said: dict[str, float] = {}

    def start(self) -> None:
        """Begin to watch, from the thread of the loop."""
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self.run, name="jobq-loop-watch", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        self._answered.set()

    def run(self) -> None:
        """The thread's life."""
        while not self._stop.wait(LOOK_SECONDS):
            self.run_once()

    def run_once(self) -> None:
        """One question. Returns once it is answered, or not wanted any more."""
        self._answered.clear()
        asked_at = monotonic()
        if not self._ask() or self._answered.wait(LIMIT_SECONDS) or self._stop.is_set():
            return
        who, fields = self._blocker()
        level = self._level(who)
        _say(level, f"{who} blocks the event loop: no other async job of this worker goes on", fields, self._stack())
        while not self._answered.wait(LIMIT_SECONDS):
            self._note(monotonic() - asked_at)
        seconds = monotonic() - asked_at
        self._note(seconds)
        self.blocks += 1
        _say(level, f"the event loop turns again after {seconds:.1f} s ({who} had blocked it)", fields)

    def _ask(self) -> bool:
        """False: the loop has ended."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._answered.set)
        except RuntimeError:
            return False
        return True

    def _note(self, seconds: float) -> None:
        self.longest = max(self.longest, timedelta(seconds=seconds))

    def _blocker(self) -> tuple[str, Mapping[str, object]]:
        """Whose task the loop is in. A task that a handler has made is known by its own name alone."""
        with suppress(RuntimeError):
            if (task := asyncio.current_task(self._loop)) is not None:
                if (held := self._held.of_task(task)) is None:
                    return f"task {task.get_name()!r}", {}
                job = held.job
                return f"job {job.id} ({job.kind})", {"job_id": job.id, "kind": job.kind, "queue": job.queue}
        return "a callback", {}

    def _stack(self) -> str | None:
        frame = sys._current_frames().get(self._loop_thread)
        return None if frame is None else _from_handler(frame)

    def _level(self, who: str) -> int:
        kind = who.rpartition("(")[2]
        now = monotonic()
        if now - self._said.get(kind, -QUIET_SECONDS) < QUIET_SECONDS:
            return logging.DEBUG
        self._said[kind] = now
        return logging.WARNING


def _from_handler(frame: FrameType) -> str:
    """The stack as text, from where the loop, or jobq, has called somebody else's code."""
    frames = [each for each, _ in traceback.walk_stack(frame)]
    callers = (place for place, each in enumerate(frames) if each.f_globals.get("__name__") in CALLERS)
    own = next(callers, len(frames)) or len(frames)  # the innermost comes first
    return "".join(traceback.format_stack(frame, limit=min(own, FRAMES))).rstrip()


def _say(level: int, text: str, extra: Mapping[str, Any], stack: str | None = None) -> None:
    """A record with the stack of another thread."""
    if logger.isEnabledFor(level):
        logger.handle(logger.makeRecord(logger.name, level, __file__, 0, text, (), None, None, extra, stack))
