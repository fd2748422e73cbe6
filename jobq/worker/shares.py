"""What each queue may take of a claim, so that a flood in one leaves their share to the others. Decisions only."""

from __future__ import annotations

import random
from collections.abc import Mapping

from jobq.fairness import allot, shuffled

LOWEST = 3


class Shares:
    """Queues that filled what they were given are busy: these divide the room by weight. The others go before them,
    each with the share that is its own if all are busy: one claim finds that out of all.

    The last of the busy ones may take what the others leave, so one claim fills the room. It fails to when that one
    runs dry: then `has_more` says that another claim would find something.
    """

    def __init__(self, source: random.Random) -> None:
        self.has_more = False
        self._busy: dict[str, int] = {}  # and the priority that filled their limit: the lower ones wait for it
        self._source = source

    def ask(self, weights: Mapping[str, int], room: int) -> dict[str, int]:
        """The limits, by queue in the order in which they are to be searched."""
        turn = shuffled(weights, self._source)
        busy = {queue: weights[queue] for queue in turn if queue in self._busy}
        if not busy:
            return dict.fromkeys(turn, room)
        last, of_all = next(reversed(busy)), allot(room, weights, self._source)
        others = {queue: max(1, of_all[queue]) for queue in turn if queue not in busy}
        limits = {**allot(room, busy, self._source), **others}
        found = {queue: limits[queue] for queue in turn if queue != last and limits[queue]}
        return {**found, last: room}

    def lowest(self, queue: str) -> int:
        """The lowest priority to be searched in a queue."""
        return self._busy.get(queue, LOWEST)

    def absorb(self, lanes: Mapping[tuple[str, int], bool], *, is_full: bool) -> None:
        """`lanes`: those that were reached, in their order, and whether each was read to its end."""
        busy_before = dict(self._busy)
        for queue in {queue for queue, _ in lanes}:
            self._busy.pop(queue, None)
        for (queue, priority), is_read_to_end in lanes.items():
            if not is_read_to_end:
                self._busy.setdefault(queue, priority)
        left_out = any(self._busy.get(queue) != lowest for queue, lowest in busy_before.items() if lowest < LOWEST)
        unasked = self._busy.keys() - {queue for queue, _ in lanes}
        filled = any(not is_read_to_end for is_read_to_end in lanes.values())
        self.has_more = not is_full and bool(left_out or unasked or filled)

    def forget(self, queues: Mapping[str, int]) -> None:
        """Only these are served from now on."""
        self._busy = {queue: priority for queue, priority in self._busy.items() if queue in queues}
