"""What watches jobs on their way into the database, and what it puts into their `meta`: tracing, where it is on."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True)
class Outgoing:
    """The jobs of one call. `queue` and `number` are None where they are several, or not known yet.

    `carried` goes into the `meta` of each; watchers fill it. `created`: ids of new jobs, as far as they are known.
    """

    kind: str
    queue: str | None
    number: int | None
    carried: dict[str, str] = field(default_factory=dict)
    created: list[int] = field(default_factory=list)

    def with_carried(self, meta: str) -> str:
        """The JSON text of an object with what is carried besides."""
        if not self.carried:
            return meta
        rest = json.dumps(self.carried)
        return rest if meta == "{}" else f"{meta[:-1]}, {rest[1:]}"


Watcher: TypeAlias = Callable[[Outgoing], AbstractContextManager[object]]
watchers: list[Watcher] = []


@contextmanager
def watched(kind: str, queues: Collection[str], number: int | None) -> Iterator[Outgoing]:
    """The block in which jobs are inserted, within what each watcher gives for it."""
    outgoing = Outgoing(kind, next(iter(queues)) if len(queues) == 1 else None, number)
    with ExitStack() as stack:
        for watcher in watchers:
            stack.enter_context(watcher(outgoing))
        yield outgoing


def carried_in(meta: Mapping[str, object]) -> dict[str, str]:
    """Of a job's `meta` what may be carried: whatever else stands there is no text."""
    return {name: value for name, value in meta.items() if isinstance(value, str)}
