"""G11: what happens of itself once no more faults come, and whether each open job is served by it.

One fair order: live workers go on, leases of the others run out, live workers rescue, frozen sessions end, the rescue
looks again. Asked of every state that can be reached, so whatever came before in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator

from model import claiming, ending, leasing, transactions
from model.guarantees_of_steps import is_served
from model.rules import Rules
from model.state import NOBODY, Worker, World

GOES_ON = (
    claiming.answer, claiming.late_claim, transactions.commit, ending.handle, ending.write, ending.work_left,
    leasing.beat, leasing.join, claiming.reconcile,
)  # fmt: skip
MOST = 200


class Recovery:
    """Remembers which worlds are known to serve every job."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[World, frozenset[int]] = {}

    def unserved(self, world: World) -> frozenset[int]:
        """Jobs that stay open and are never free to be claimed."""
        chain: list[World] = []
        now: World | None = world
        while now is not None and now not in self._known:
            chain.append(now)
            assert len(chain) < MOST, "it goes round in circles"
            now = following(now, self._rules)
        missing = frozenset(range(len(world.jobs))) if now is None else self._known[now]
        for each in reversed(chain):
            missing = frozenset(j for j in missing | _kept_waiting(each, now) if not is_served(each, j))
            self._known[each], now = missing, each
        return missing


def _kept_waiting(world: World, after: World | None) -> frozenset[int]:
    """Where a frozen session has to be ended next: the jobs that wait for it although it has not locked them."""
    if after is None or not any(_is_frozen(worker) for worker in world.workers) or world.jobs != after.jobs:
        return frozenset()
    if after.workers not in [each.workers for each in _end_of_frozen_sessions(world)]:
        return frozenset()
    return frozenset(j for j in range(len(world.jobs)) if not world.is_locked(j))


def following(world: World, rules: Rules) -> World | None:
    """The next world, or None where nothing more happens of itself."""
    calm = world._replace(faults=0, hands=0, past=None)
    after = next(_possible(calm, rules), None)
    return None if after is None else after._replace(faults=world.faults, hands=world.hands, past=world.past)


def _possible(world: World, rules: Rules) -> Iterator[World]:
    workers = range(len(world.workers))
    for of_worker in GOES_ON:
        yield from (step.after for w in workers for step in of_worker(world, rules, w))
    yield from (step.after for w in workers for step in leasing.expire(world, rules, w))
    yield from _rescues(world, rules)
    if rules.looks_again_by_time or not any(worker.mode == "up" for worker in world.workers):
        after = leasing.rescued(world, rules, NOBODY, everywhere=True)
        if after != world:
            yield after
    yield from _end_of_frozen_sessions(world)


def _rescues(world: World, rules: Rules) -> Iterator[World]:
    """A pass of each live worker, where it changes more than whether it looks again."""
    for w in range(len(world.workers)):
        for step in leasing.rescue(world, rules, w):
            if step.after.jobs != world.jobs or [v.row for v in step.after.workers] != [v.row for v in world.workers]:
                yield step.after


def _end_of_frozen_sessions(world: World) -> Iterator[World]:
    """The server gives up on the session of a process that does not answer: its transaction is rolled back."""
    for w, worker in enumerate(world.workers):
        if _is_frozen(worker):
            holds = tuple(hold for hold in worker.holds if hold.phase != "open")
            yield world.with_worker(w, worker._replace(holds=holds))


def _is_frozen(worker: Worker) -> bool:
    return worker.mode == "cut" and any(hold.phase == "open" for hold in worker.holds)
