"""Two acts that wait for their turn before each of their steps: a statement, or the COMMIT."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

PATIENCE = 30
GLANCE = 0.003  # after that long without a sign the server is asked whether an act waits for a lock
Order = list[int]  # which of the two makes the next step: 0 or 1


class Turns:
    """Where an act waits before each step. `still`: it waits, or it has ended."""

    def __init__(self, *, is_free: bool = False) -> None:
        self._is_free = is_free
        self.still, self._go_on = threading.Event(), threading.Event()

    def wait(self) -> None:
        if self._is_free:
            return
        self.still.set()
        assert self._go_on.wait(PATIENCE)
        self._go_on.clear()

    def give(self) -> None:
        self.still.clear()
        self._go_on.set()


class Performance:
    """Two acts that have begun, each before its first statement."""

    def __init__(self, futures: Sequence[Future[bool]], turns: Sequence[Turns]) -> None:
        self._futures, self._turns = futures, turns
        self.order: Order = []

    def can_step(self) -> list[int]:
        """Those that neither have ended nor wait for a lock."""
        return [n for n in (0, 1) if self._turns[n].still.is_set() and not self._futures[n].done()]

    def step(self, n: int) -> None:
        self.order.append(n)
        self._turns[n].give()

    def running(self) -> list[int]:
        return [n for n in (0, 1) if not self._turns[n].still.is_set()]

    def is_still(self, n: int) -> bool:
        return self._turns[n].still.wait(GLANCE)

    def ended(self) -> list[bool]:
        return [future.result(PATIENCE) for future in self._futures]
