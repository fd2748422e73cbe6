"""Takes in claimed jobs: each is held, and waits for a slot, or goes back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

from jobq.model import Claimed, State
from jobq.queue_settings import QueueSettings
from jobq.store.ending import Ending
from jobq.verdict import Verdict
from jobq.worker.ahead import Ahead
from jobq.worker.completer import Completer
from jobq.worker.groups import Room
from jobq.worker.held import Held, HeldJobs, Stop, held_of
from jobq.worker.left_behind import LeftBehind
from jobq.worker.stopper import Stopper

UNSAID = QueueSettings()
NOW = timedelta(0)
STILL_RUNNING = timedelta(seconds=5)  # how long a job waits whose former attempt still runs in this process


class Intake:
    """`waiting`: what has been taken in and not begun. `rooms`: by kind, for kinds that need more than a slot."""

    def __init__(
        self,
        handlers: Mapping[str, Any],
        queues: Mapping[str, QueueSettings],
        rooms: Mapping[str, Room],
        held: HeldJobs,
        completer: Completer,
        left_behind: LeftBehind,
        *,
        slots: int,
    ) -> None:
        # A job that is dead when its worker dies must not be so before it has begun.
        may_wait = not any(handler.settings.on_interrupt == "fail" for handler in handlers.values())
        self.waiting = Ahead(slots, self.give_back, is_allowed=may_wait)
        self._handlers = handlers
        self._queues = queues
        self._rooms = rooms
        self._held = held
        self._completer = completer
        self._left_behind = left_behind

    def receive(self, jobs: Iterable[Claimed], running: Collection[Held], stopper: Stopper) -> None:
        """Hold claimed jobs. An earlier attempt that runs here is told to stop, and waited for."""
        now = monotonic()
        for job in jobs:
            held = held_of(job, self._handlers[job.kind], self._queues.get(job.queue, UNSAID), now)
            earlier = self._held.put(held)
            if job.kind in self._rooms:
                self._rooms[job.kind].hold(job)
            if job.attempt > 1 and self._still_runs(job.id, earlier, running, stopper):
                self.let_go(held)
                self._completer.add(held, _put_off(held), Verdict(State.PENDING))
            else:
                self.waiting.put(held)
        self.waiting.settle_in(len(running))

    def hand_back(self, queue: str | None = None) -> None:
        """Give back the jobs that wait for a slot, of one queue or all."""
        self.waiting.hand_back(lambda held: queue is None or held.job.queue == queue)

    def give_back(self, held: Held) -> None:
        """One that has not begun."""
        self.let_go(held)
        if held.job.slot is None:
            self._completer.give_back(held)
        else:
            self._completer.add(held, Ending(held.fence, State.PENDING, slot_wait=NOW), Verdict(State.PENDING))

    def let_go(self, held: Held) -> None:
        """A job is not to begin here."""
        held.settled = True
        if held.job.kind in self._rooms:
            self._rooms[held.job.kind].release(held.job)

    def _still_runs(self, id_: int, earlier: Held | None, running: Collection[Held], stopper: Stopper) -> bool:
        """Told to stop, if it does; an earlier attempt that waits is let go of."""
        if earlier is not None:
            stopper.stop(earlier, Stop.LOST)  # taken away, by hand say
        return earlier in running or id_ in self._left_behind


def _put_off(held: Held) -> Ending:
    """Back until its former attempt has ended; in a FIFO queue it keeps its place, and the slot waits."""
    if held.job.slot is None:
        return Ending(held.fence, State.PENDING, delay=STILL_RUNNING)
    if held.job.in_order:
        return Ending(held.fence, State.PENDING, slot_wait=STILL_RUNNING)
    return Ending(held.fence, State.PENDING, delay=STILL_RUNNING, slot_wait=NOW)
