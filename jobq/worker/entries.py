"""Ends of jobs on their way to the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jobq.model import State
from jobq.store.ending import Ending
from jobq.verdict import Verdict
from jobq.worker.held import Held


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An end that asks for more than a text. `verdict` None: the job was lost, only its slot is freed."""

    held: Held
    ending: Ending
    verdict: Verdict | None
    completed: bool  # when added: a thread left behind may complete its job later

    @property
    def is_alone(self) -> bool:
        """Written by a statement of its own: it goes back, or it frees a slot."""
        return self.ending.state is State.PENDING or self.ending.slot_wait is not None


@dataclass(slots=True)
class Batch:
    """What is written together. done: jobs that ended well. given_back: those that never began."""

    done: list[Held] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    given_back: list[Held] = field(default_factory=list)

    def ending(self) -> Iterator[Held]:
        """Whose end it is that is written."""
        yield from self.done
        yield from (entry.held for entry in self.entries)

    def __bool__(self) -> bool:
        return bool(self.done or self.entries or self.given_back)
