"""Which limited queues a worker serves, and when it looks at them next. Decisions only, no I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from time import monotonic

from jobq.fairness import shuffled
from jobq.store.claiming import Claim

LONGEST_WAIT = 5.0  # between two looks, whatever they take
LOOK_SHARE = 20  # looks that find nothing take 5 % of a core at most
BETWEEN_LOOKS = 0.05  # a worker that is told again and again looks this often


class LimitedQueues:
    """Queues whose jobs are claimed with a slot. What a look finds not ready is looked at when it will be."""

    def __init__(self, source: random.Random | None = None, clock: Callable[[], float] = monotonic) -> None:
        self.due_at = 0.0
        self._weights: dict[str, int] = {}
        self._in_order: frozenset[str] = frozenset()
        self._source = source or random.Random()
        self._clock = clock
        self._looked_at = 0.0
        self._has_looked = False

    def __contains__(self, queue: str) -> bool:
        return queue in self._weights

    @property
    def weight(self) -> int:
        """Of all of them together."""
        return sum(self._weights.values())

    @property
    def is_due(self) -> bool:
        return bool(self._weights) and self._clock() >= self.due_at

    def serve(self, weights: Mapping[str, int], in_order: frozenset[str]) -> None:
        """Serve these from now on; `in_order` are FIFO."""
        if self._weights.keys() != weights.keys() or self._in_order != in_order:
            self.due_at = 0.0
        self._weights, self._in_order = dict(weights), in_order

    def tell(self) -> None:
        """Something is due in one of them."""
        self.due_at = min(self.due_at, self._looked_at + BETWEEN_LOOKS)

    def freed(self, wait: timedelta) -> None:
        """A slot was freed, and is ready after `wait`."""
        self.due_at = min(self.due_at, self._clock() + wait.total_seconds())

    def ask(self) -> list[tuple[bool, list[str]]]:
        """The claims of a look: whether each is in order, and its queues by their turn; none without queues."""
        turn = shuffled(self._weights, self._source)
        asked = [(flag, [queue for queue in turn if (queue in self._in_order) is flag]) for flag in (True, False)]
        self._source.shuffle(asked)
        return [(in_order, queues) for in_order, queues in asked if queues]

    def begin(self, poll_seconds: float) -> None:
        """A look begins: what is told or freed from now on may not be seen by it."""
        self._looked_at = self._clock()
        self.due_at = self._looked_at + poll_seconds

    def absorb(self, claim: Claim, most: int, *, took: float) -> None:
        """Look again at once where there may be more, else when the next slot or queue is ready.

        A look that finds nothing and takes long (it walks through a crowd of other kinds) is repeated less often.
        """
        if len(claim.jobs) >= most:
            self.due_at = 0.0
            return
        if not claim.jobs and self._has_looked:  # the first one's time is that of connecting and planning
            self.due_at = max(self.due_at, self._looked_at + min(LOOK_SHARE * took, LONGEST_WAIT))
        self._has_looked = True
        if claim.next_at is not None:
            self.freed(claim.next_at - claim.now)
