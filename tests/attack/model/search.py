"""Every state that can be reached, breadth first: the first violation is one of the shortest."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from model.guarantees_of_steps import broken_by
from model.names import canonical
from model.recovery import Recovery
from model.rules import Rules
from model.state import World
from model.steps import steps


@dataclass(frozen=True, slots=True)
class Found:
    """How much was searched, and the first violation: its guarantee and the steps that lead to it."""

    states: int
    transitions: int
    guarantee: str | None = None
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = f"{self.states} states, {self.transitions} transitions"
        return "\n".join([f"{self.guarantee or 'nothing'} broken in {size}", *(f"  {step}" for step in self.trace)])


class Seen:
    """Worlds, each with the budgets of faults and hands it was seen with: with less of both nothing else happens."""

    def __init__(self) -> None:
        self._budgets: dict[World, list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self._budgets)

    def is_new(self, world: World) -> bool:
        """Whether it allows for more than before; it is noted."""
        budgets = self._budgets.setdefault(world._replace(faults=0, hands=0), [])
        if any(faults >= world.faults and hands >= world.hands for faults, hands in budgets):
            return False
        budgets[:] = [each for each in budgets if each[0] > world.faults or each[1] > world.hands]
        budgets.append((world.faults, world.hands))
        return True


def search(start: World, rules: Rules) -> Found:
    """Search until something is broken or nothing new is found."""
    first = canonical(start, rules)
    came_from: dict[World, World | None] = {first: None}
    queue, recovery, seen, transitions = deque([first]), Recovery(rules), Seen(), 0
    seen.is_new(first)
    while queue:
        before = queue.popleft()
        if recovery.unserved(before):
            return Found(len(seen), transitions, "G11", _trace(start, _path(came_from, before), rules))
        for step in steps(before, rules):
            transitions += 1
            if guarantee := broken_by(before, step, rules):
                path = [*_path(came_from, before), canonical(step.after, rules)]
                return Found(len(seen), transitions, guarantee, _trace(start, path, rules))
            after = canonical(step.after, rules)
            if seen.is_new(after):
                came_from[after] = before
                queue.append(after)
    return Found(len(seen), transitions)


def _path(came_from: dict[World, World | None], last: World) -> list[World]:
    path = [last]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path[::-1]


def _trace(start: World, path: list[World], rules: Rules) -> tuple[str, ...]:
    """The steps along a path of canonical states, with the names that workers and jobs had at the start."""
    names, now = [], start
    for target in path[1:]:
        step = next(step for step in steps(now, rules) if canonical(step.after, rules) == target)
        names.append(step.name)
        now = step.after
    return tuple(names)
