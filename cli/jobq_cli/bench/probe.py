"""A file in memory where handlers count and stamp, so that measuring costs the database nothing.

The standard library alone: tests/bench/peers imports this in environments that know nothing of jobq.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

VARIABLE = "JOBQ_BENCH_PROBE"
PROCESSES = 64
MOST_TIMES = 20_000
SLOT = struct.Struct("<qdd")  # of a process: hits, the first, the last
TIMES = struct.Struct("<ddd")  # of a numbered job: before its enqueue, after the commit, its start
_HEAD = PROCESSES * SLOT.size

now = time.monotonic  # one clock for every process on the machine


@dataclass(frozen=True, slots=True)
class Hits:
    """What the handlers of all processes have counted."""

    number: int = 0
    first: float = 0.0
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class Times:
    """One job, in seconds of the clock."""

    before: float
    committed: float
    started: float


class Probe:
    """Counts in this process. `path` None: the file that the environment names, opened at the first hit."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._memory: mmap.mmap | None = None
        self._slot: int | None = None  # of those that hit
        self._number = 0
        self._first = 0.0

    def hit(self, index: int = -1) -> None:
        """A handler has started; `index`: stamp it, as the job of this number."""
        at = now()
        with self._lock:
            memory = self._memory or self._map()
            if self._slot is None:
                self._slot, self._first = self._taken(memory, at), at
            self._number += 1
            SLOT.pack_into(memory, self._slot, self._number, self._first, at)
            if index >= 0:
                struct.pack_into("<d", memory, _HEAD + index * TIMES.size + 16, at)

    def sent(self, index: int, before: float, committed: float) -> None:
        """A producer has enqueued the job of this number."""
        with self._lock:
            memory = self._memory or self._map()
            struct.pack_into("<dd", memory, _HEAD + index * TIMES.size, before, committed)

    def _map(self) -> mmap.mmap:
        with self._opened() as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        return self._memory

    def _taken(self, memory: mmap.mmap, at: float) -> int:
        """The place of this process, which nobody else has."""
        with self._opened() as file:
            fcntl.lockf(file, fcntl.LOCK_EX)  # until the file is closed
            for place in range(0, _HEAD, SLOT.size):
                if SLOT.unpack_from(memory, place)[0] == 0:
                    SLOT.pack_into(memory, place, 1, at, at)
                    return place
        raise RuntimeError(f"more than {PROCESSES} processes count")

    def _opened(self) -> IO[bytes]:
        return open(self._path or os.environ[VARIABLE], "r+b")


def create() -> str:
    """A new file, in memory where there is a place for that; to be removed by the caller."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    descriptor, path = tempfile.mkstemp(prefix="jobq-bench-", dir=shared)
    os.close(descriptor)
    Path(path).chmod(0o666)  # workers may run as another user
    clear(path)
    return path


def clear(path: str) -> None:
    """Nothing has been counted; only while no process counts."""
    with open(path, "wb") as file:
        file.truncate(_HEAD + MOST_TIMES * TIMES.size)


def read(path: str) -> Hits:
    """The hits of all processes."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    slots = [SLOT.unpack_from(head, place) for place in range(0, _HEAD, SLOT.size)]
    used = [slot for slot in slots if slot[0]]
    if not used:
        return Hits()
    return Hits(sum(slot[0] for slot in used), min(slot[1] for slot in used), max(slot[2] for slot in used))


def read_times(path: str, number: int) -> list[Times]:
    """The jobs below this number that were both enqueued and started."""
    with open(path, "rb") as file:
        file.seek(_HEAD)
        raw = file.read(number * TIMES.size)
    found = [Times(*TIMES.unpack_from(raw, place)) for place in range(0, len(raw), TIMES.size)]
    return [times for times in found if times.committed and times.started]
