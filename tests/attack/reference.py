"""What jobq is to do, once more, in a page of plain Python: no database, no concurrency, hours for times.

A moment is (hour, tick): transactions are numbered, and what two of them do in one hour is told apart by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Moment = tuple[int, int]
Change = Literal["ignore", "raise", "replace", "reschedule"]
Answer = tuple[int, bool, bool]  # id, created, changed
Fence = tuple[int, int, int | None]  # job, attempt, worker
KEEP_DONE, KEEP_ENDED = 24, 7 * 24
NEVER = (-1, 0)
QUEUES = {"plain": None, "other": None, "line": 1, "pair": 2}
FIFO = "line"


class Want(NamedTuple):
    """One enqueue. `max_wait` goes with "reschedule" alone."""

    number: int
    kind: str
    queue: str
    priority: int
    delay: int
    max_attempts: int
    key: str | None = None
    change: Change = "ignore"
    max_wait: int | None = None


@dataclass
class Row:
    """One job, as `all_jobs` has it."""

    id: int
    number: int
    kind: str
    queue: str
    priority: int
    run_at: Moment
    created_at: Moment
    max_attempts: int
    key: str | None
    state: str = "pending"
    attempt: int = 0
    failures: int = 0
    errors: int = 0
    worker: int | None = None
    expires_at: Moment = NEVER

    @property
    def fence(self) -> Fence:
        return self.id, self.attempt, self.worker

    @property
    def is_open(self) -> bool:
        return self.state in ("pending", "running")


@dataclass
class Slot:
    """The right to run one job of a limited queue, and who has it."""

    ready_at: Moment = NEVER
    holder: Fence | None = None


@dataclass
class Reference:
    """`keeps` and `fails`: what the kinds say of keep (hours) and of `on_interrupt="fail"`."""

    keeps: dict[str, int]
    fails: frozenset[str]
    rows: dict[int, Row] = field(default_factory=dict)
    paused: dict[str, Moment] = field(default_factory=dict)
    slots: dict[str, list[Slot]] = field(
        default_factory=lambda: {name: [Slot() for _ in range(most)] for name, most in QUEUES.items() if most}
    )
    hour: int = 0
    tick: int = 0

    def begin(self) -> Moment:
        """A transaction: this is its now."""
        self.tick += 1
        return self.now

    @property
    def now(self) -> Moment:
        return self.hour, self.tick

    def after(self, hours: int) -> Moment:
        return self.hour + hours, self.tick

    def of_state(self, *states: str) -> list[Row]:
        return [row for row in self.rows.values() if row.state in states]

    def holder_of(self, key: str | None) -> Row | None:
        return next((row for row in self.rows.values() if row.is_open and row.key == key and key is not None), None)

    # ---- what applications do

    def enqueue(self, want: Want, new_id: int) -> Answer | None:
        """`new_id`: the id of a job that is inserted. None: refused, the key is held."""
        holder = self.holder_of(want.key)
        if holder is None:
            latest = self.after(want.delay if want.max_wait is None else min(want.delay, want.max_wait))
            self.rows[new_id] = Row(
                new_id, want.number, want.kind, want.queue, want.priority, latest, self.now, want.max_attempts, want.key
            )
            return new_id, True, False
        if want.change == "raise" or (want.change != "ignore" and holder.kind != want.kind):
            return None
        if want.change == "ignore" or holder.state == "running":
            return holder.id, False, False
        (self._replace if want.change == "replace" else self._reschedule)(holder, want)
        return holder.id, False, True

    def _replace(self, row: Row, want: Want) -> None:
        row.number, row.queue, row.priority = want.number, want.queue, want.priority
        row.run_at, row.max_attempts = self.after(want.delay), max(want.max_attempts, row.failures + 1)

    def _reschedule(self, row: Row, want: Want) -> None:
        moved = self.after(want.delay)
        if want.max_wait is not None:
            latest = (row.created_at[0] + want.max_wait, row.created_at[1])
            late = latest if latest > self.now else min(row.run_at, self.now)
            moved = moved if moved <= latest else late
        row.run_at = max(row.run_at, moved) if row.attempt else moved

    # ---- what operators do

    def retry(self, id_: int) -> str | None:
        """The name of the refusal, None: pending again."""
        row = self.rows.get(id_)
        if row is None or row.is_open:
            return "UnknownJobError" if row is None else "NotEndedError"
        if self.holder_of(row.key) is not None:
            return "UniqueKeyError"
        row.state, row.run_at, row.failures, row.worker, row.expires_at = "pending", self.now, 0, None, NEVER
        return None

    def cancel(self, id_: int, *, running: bool) -> str | None:
        row = self.rows.get(id_)
        if row is None:
            return "UnknownJobError"
        if not (row.state == "pending" or (running and row.state == "running")):
            return "NotPendingError"
        self._end(row, "cancelled")
        return None

    def pause(self, queue: str, hours: int) -> None:
        self.paused[queue] = self.after(hours)

    def resume(self, queue: str) -> bool:
        was_paused = self.is_paused(queue)
        self.paused.pop(queue, None)
        return was_paused

    def is_paused(self, queue: str) -> bool:
        return self.paused.get(queue, NEVER) > self.now

    def clean(self) -> int:
        """Forget what has been kept for its time; how many."""
        gone = [row.id for row in self.rows.values() if not row.is_open and row.expires_at <= self.now]
        for id_ in gone:
            del self.rows[id_]
        return len(gone)

    # ---- what workers do

    def take(self, worker: int) -> Row | None:
        """The next job, with a slot where its queue has a limit: priority first, then time."""
        for first in sorted(self._firsts(), key=_place):
            row = self._to_take(first)
            if row is not None:
                row.state, row.worker, row.attempt = "running", worker, row.attempt + 1
                if QUEUES[row.queue]:
                    self._free_slots(row.queue)[0].holder = row.fence
                return row
        return None

    def _firsts(self) -> Iterator[Row]:
        """The first due job of each lane."""
        lanes: dict[tuple[str, int], Row] = {}
        for row in sorted(self.rows.values(), key=_place):
            if self._is_due(row):
                lanes.setdefault((row.queue, row.priority), row)
        yield from lanes.values()

    def _to_take(self, first: Row) -> Row | None:
        queue = first.queue
        if self.is_paused(queue) or (QUEUES[queue] and not self._free_slots(queue)):
            return None
        if queue == FIFO:  # the head runs, or nothing does
            head = min((row for row in self.rows.values() if row.queue == queue and self._may_run(row)), key=_place)
            return head if head.state == "pending" else None
        if QUEUES[queue]:
            return min((row for row in self.rows.values() if row.queue == queue and self._is_due(row)), key=_place)
        return first

    def _free_slots(self, queue: str) -> list[Slot]:
        return [slot for slot in self.slots[queue] if slot.holder is None and slot.ready_at <= self.now]

    def _may_run(self, row: Row) -> bool:
        return row.is_open and row.run_at <= self.now and row.failures < row.max_attempts

    def _is_due(self, row: Row) -> bool:
        return row.state == "pending" and self._may_run(row)

    def end(self, taken: Row, how: str, hours: int) -> bool:
        """What became of an attempt, `taken` as it was when it was claimed; False: it is another hand's job now."""
        fails = how in ("fail", "permanent")
        is_last = how == "permanent" or taken.failures + 1 >= taken.max_attempts
        waits = taken.failures + 1 if how == "fail" and not is_last else 0
        self._free_slot_of(taken, waits if taken.queue == FIFO else 0)
        if how == "pause":  # what the handler saw is true, whoever has its job now
            self.paused[taken.queue] = max(self.paused.get(taken.queue, NEVER), self.after(hours))
        row = self.rows.get(taken.id)
        if row is None or row.state != "running" or row.fence != taken.fence:
            return False
        row.failures, row.errors = row.failures + fails, row.errors + fails
        if how == "done" or (fails and is_last):
            self._end(row, "done" if how == "done" else "dead")
        else:
            moves = how == "snooze" or (how == "fail" and row.queue != FIFO)
            self._put_back(row, self.after(hours if how == "snooze" else waits) if moves else None)
        return True

    def _free_slot_of(self, taken: Row, hours: int) -> None:
        for slot in (slot for slots in self.slots.values() for slot in slots if slot.holder == taken.fence):
            slot.holder, slot.ready_at = None, max(slot.ready_at, self.after(hours))

    def _put_back(self, row: Row, run_at: Moment | None) -> None:
        row.state, row.worker, row.run_at = "pending", None, run_at or row.run_at

    def leave(self, worker: int) -> None:
        """What a worker holds goes back at no cost."""
        for row in [row for row in self.rows.values() if row.state == "running" and row.worker == worker]:
            self._put_back(row, None)
        self._release({worker})

    def rescue(self, lost: set[int]) -> None:
        for row in [row for row in self.rows.values() if row.state == "running" and row.worker in lost]:
            row.failures, row.errors, row.state, row.worker = row.failures + 1, row.errors + 1, "pending", None
            if row.kind in self.fails or row.failures >= row.max_attempts:
                self._end(row, "dead")
        self._release(lost)

    def _release(self, workers: set[int]) -> None:
        for slots in self.slots.values():
            for slot in slots:
                if slot.holder is not None and slot.holder[2] in workers:
                    slot.holder = None

    def _end(self, row: Row, state: str) -> None:
        keep = self.keeps.get(row.kind)
        least = KEEP_DONE if keep is None else keep
        kept = least if state == "done" else max(keep or 0, KEEP_ENDED)
        row.state, row.expires_at = state, self.after(kept)


def _place(row: Row) -> tuple[int, Moment, int]:
    return row.priority, row.run_at, row.id
