"""Whether work that was to be done was done: once, and nothing else; judged from a record of effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
SHOWN = 5  # keys of each sort that the text shows


@dataclass(frozen=True, slots=True)
class History(Generic[K]):
    """What `check_history` found.

    expected: how many keys are to have an effect by now. effects: how long the record is.
    lost: expected, and without an effect. duplicated: each key with more effects than it may have, and how many too
    many. unexpected: effects of keys that nobody committed. recovered: keys whose commit got no answer, and which have
    an effect: that commit happened. Only the last is no fault.
    """

    expected: int
    effects: int
    lost: frozenset[K]
    duplicated: Mapping[K, int]
    unexpected: frozenset[K]
    recovered: frozenset[K]

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, duplicated or unexpected."""
        return not (self.lost or self.duplicated or self.unexpected)

    def __str__(self) -> str:
        sorts: dict[str, Collection[K]] = {
            "lost": self.lost,
            "duplicated": self.duplicated,
            "unexpected": self.unexpected,
            "recovered": self.recovered,
        }
        found = [f"{len(keys)} {word}{_some(keys)}" for word, keys in sorts.items()]
        return f"{self.expected} expected, {self.effects} effects: {', '.join(found)}"


def check_history(
    effects: Iterable[K],
    *,
    committed: Iterable[K],
    doubtful: Iterable[K] = (),
    unfinished: Iterable[K] = (),
    may_repeat: Mapping[K, int] | None = None,
) -> History[K]:
    """Compare what was to be done with an append-only record of what was done, after a test that disturbs the workers.

        found = check_history(
            session.scalars(select(Receipt.order_id)),       # one row for each time that the effect happened
            committed=order_ids,
            may_repeat={order_id: 1 for order_id in disturbed},
        )
        assert found.ok, found

    A key is whatever names one piece of work: a job's id, or one of its arguments. The record has the key once for each
    effect, in any order; write it where the effect happens, and only ever insert.

    - `committed`: the keys whose enqueue was committed. Each is to have an effect, but for those of `unfinished`.
    - `doubtful`: keys whose commit got no answer. Such a job may exist or not; both are right.
    - `unfinished`: keys of jobs that still wait or run, or ended without their effect (dead, cancelled): they may have
      an effect, of an attempt that did not end, and are not lost without one.
    - `may_repeat`: how many effects beyond the first a key may have: for work that runs at least once, its attempts
      that were interrupted; for work in `current().transaction()`, none.

    The words are those of the checkers for sets and queues that distributed databases are tested with: a key is *lost*
    when it was committed and has no effect, *duplicated* when it has more than it may have, *unexpected* when nobody
    committed it (of a transaction that was rolled back, say), *recovered* when it is doubtful and has an effect.
    """
    counts = Counter(effects)
    known, unsure = frozenset(committed), frozenset(doubtful)
    expected = known - frozenset(unfinished)
    allowed = may_repeat or {}
    extra = {key: count - 1 - allowed.get(key, 0) for key, count in counts.items()}
    return History(
        expected=len(expected),
        effects=counts.total(),
        lost=expected - counts.keys(),
        duplicated=MappingProxyType({key: more for key, more in extra.items() if more > 0}),
        unexpected=frozenset(counts.keys() - known - unsure),
        recovered=frozenset((unsure - known) & counts.keys()),
    )


def _some(keys: Collection[K]) -> str:
    """The first of them, in brackets."""
    if not keys:
        return ""
    shown = sorted(map(str, keys))[:SHOWN]
    return f" ({', '.join(shown)}{', ...' if len(keys) > SHOWN else ''})"
