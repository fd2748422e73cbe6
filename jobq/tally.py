"""Puts together what `jobq.stats` says, from the rows that its statements gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobq.histogram import percentile
from jobq.model import State
from jobq.report import READY_LIMIT, KindStats, OutcomeStats, QueueStats, Stats

RECENT_LIMIT = 20_000  # jobs that ended since the last summed minute are counted one by one so far


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows that the statements of stats gave, and how far those went that are bounded."""

    at: datetime
    live_workers: int
    left_behind: int
    known_kinds: Sequence[str]
    summed_until: datetime | None
    waiting: Sequence[Any]
    dead: Sequence[Any]
    recent: Sequence[Any]
    known: Sequence[Any]
    totals: Sequence[Any]
    durations: Sequence[Any]
    most_waiting: int
    most_recent: int


@dataclass(slots=True)
class _Spans:
    """How long the attempts of a kind took."""

    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    longest: timedelta = timedelta(0)

    def add(self, bucket: int, number: int, longest: timedelta) -> None:
        self.counts[bucket] += number
        self.longest = max(self.longest, longest)


def stats_of(counts: Counts) -> Stats:
    """Every count once, put together by queue."""
    by_queue: dict[str, dict[str, Any]] = defaultdict(dict)
    is_cut = sum(row.read for row in counts.recent) >= counts.most_recent
    outcomes = _outcomes(counts)
    _add_known(by_queue, counts.known)
    _add_waiting(by_queue, counts)
    _add_dead(by_queue, counts.dead)
    _add_ended(by_queue, outcomes, is_cut=is_cut)
    _add_rates(by_queue, counts.recent)
    queues = tuple(QueueStats(queue=name, **by_queue[name]) for name in sorted(by_queue))
    return Stats(
        at=counts.at,
        queues=queues,
        kinds=_kinds(counts),
        outcomes=outcomes,
        states=_states(queues),
        more_pending=any(queue.more_ready or queue.more_scheduled for queue in queues),
        oldest_due=max((queue.oldest_due for queue in queues if queue.oldest_due is not None), default=None),
        dead_last_hour=min(sum(row.last_hour for row in counts.dead), READY_LIMIT),
        live_workers=counts.live_workers,
        left_behind=counts.left_behind,
        unknown_kinds=unknown_kinds(counts.waiting, counts.known_kinds),
        summed_until=counts.summed_until,
    )


def _add_known(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> None:
    for row in rows:
        numbers = by_queue[row.queue]
        if row.paused_until is not None:
            numbers.update(paused_until=row.paused_until, pause_reason=row.reason)


def _add_waiting(by_queue: dict[str, dict[str, Any]], counts: Counts) -> None:
    """The rows of a lane together tell whether it was read to its end."""
    lanes: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for row in counts.waiting:
        numbers, lane = by_queue[row.queue], lanes[row.queue, row.priority]
        lane[0] += row.ready + row.running
        lane[1] += row.scheduled
        for name in ("ready", "scheduled", "running"):
            numbers[name] = numbers.get(name, 0) + getattr(row, name)
        numbers["more_ready"] = numbers.get("more_ready", False) or lane[0] >= counts.most_waiting
        numbers["more_scheduled"] = numbers.get("more_scheduled", False) or lane[1] >= counts.most_waiting
        if row.oldest is not None:
            age = max(counts.at - row.oldest, timedelta(0))
            numbers["oldest_due"] = max(numbers.get("oldest_due") or age, age)
    for numbers in by_queue.values():
        for name in ("ready", "scheduled"):
            numbers[f"more_{name}"] = numbers.get(f"more_{name}", False) or numbers.get(name, 0) > READY_LIMIT
            numbers[name] = min(numbers.get(name, 0), READY_LIMIT)


def _add_dead(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> None:
    for row in rows:
        by_queue[row.queue].update(dead=min(row.kept, READY_LIMIT), more_dead=row.kept > READY_LIMIT)


def _add_ended(by_queue: dict[str, dict[str, Any]], outcomes: Iterable[OutcomeStats], *, is_cut: bool) -> None:
    for each in outcomes:
        if each.state is State.DEAD:
            continue
        numbers = by_queue[each.queue]
        numbers[each.state.value] = numbers.get(each.state.value, 0) + each.finished
        numbers["more_done"] = is_cut


def _add_rates(by_queue: dict[str, dict[str, Any]], rows: Iterable[Any]) -> None:
    for row in rows:
        if row.state != State.CANCELLED:
            numbers = by_queue[row.queue]
            numbers["rate_per_second"] = numbers.get("rate_per_second", 0.0) + row.last_minute / 60


def _outcomes(counts: Counts) -> tuple[OutcomeStats, ...]:
    found: dict[tuple[str, str, str, str], int] = defaultdict(int)
    for row in (*counts.totals, *counts.recent):
        found[row.queue, row.kind, row.state, row.word] += row.finished
    named = sorted((key, number) for key, number in found.items() if number)
    return tuple(OutcomeStats(queue, kind, State(state), word, n) for (queue, kind, state, word), n in named)


def _kinds(counts: Counts) -> tuple[KindStats, ...]:
    spans: dict[str, _Spans] = defaultdict(_Spans)
    for row in counts.durations:
        spans[row.kind].add(row.bucket, row.n, row.longest)
    for row in counts.recent:
        if row.bucket is not None:
            spans[row.kind].add(row.bucket, row.timed, row.longest)
    return tuple(_kind(kind, spans[kind]) for kind in sorted(spans))


def _kind(kind: str, spans: _Spans) -> KindStats:
    p50, p95 = (percentile(spans.counts, share, spans.longest) for share in (0.5, 0.95))
    return KindStats(kind, sum(spans.counts.values()), p50, p95, spans.longest)


def unknown_kinds(waiting: Iterable[Any], known_kinds: Iterable[str]) -> dict[str, int]:
    """Waiting jobs, by kinds that no live worker has a handler for."""
    known, found = set(known_kinds), dict[str, int]()
    for row in waiting:
        if row.kind not in known and row.ready + row.scheduled:
            found[row.kind] = found.get(row.kind, 0) + row.ready + row.scheduled
    return dict(sorted(found.items()))


def _states(queues: Iterable[QueueStats]) -> dict[State, int]:
    totals = dict.fromkeys(State, 0)
    for queue in queues:
        totals[State.PENDING] += queue.ready + queue.scheduled
        for state in (State.RUNNING, State.DONE, State.DEAD, State.CANCELLED):
            totals[state] += getattr(queue, state)
    return totals
