"""Attack 6: workers whose wall clock is wrong and jumps; libfaketime stands between them and the kernel's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from arena import Arena
from fleet import AT_WORK, Member, wait_out

LIBRARIES = ("/usr/lib/*/faketime", "/usr/local/lib/faketime", "/usr/lib/faketime", "/usr/lib64/faketime")
HOUR = 3600.0
LEASE_SECONDS = 6  # under libfaketime all is slow, most of all connecting; every jump is longer
JUMPS = (HOUR, -HOUR, 0.0, 24 * HOUR, 0.5, -HOUR)  # what a clock is set to, off the right time


def faketime() -> Path | None:
    """The library for programs with threads."""
    places = (found for pattern in LIBRARIES for found in Path("/").glob(f"{pattern[1:]}/libfaketimeMT.so.1"))
    return next(places, None)


@dataclass
class Clock:
    """The wall clock of one process, which may be set. The monotonic one is left alone, as by the kernel."""

    library: Path
    file: Path

    def set(self, seconds_off: float) -> None:
        """Replaced as a whole: the process reads the file at any moment."""
        unfinished = self.file.with_suffix(".new")
        unfinished.write_text(f"{seconds_off:+.3f}\n")
        unfinished.rename(self.file)

    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }


@dataclass
class Jumping:
    """Three workers: one an hour ahead, one an hour behind, one whose clock jumps; jobs now, later and retried."""

    arena: Arena
    library: Path
    folder: Path
    seconds: float
    jobs: list[int] = field(default_factory=list)
    jumps: int = 0

    def run(self) -> list[str]:
        """The violations."""
        members = [self._start(name, off) for name, off in (("ahead", HOUR), ("behind", -HOUR), ("jumps", 0.0))]
        for member, _ in members:
            member.until_said(AT_WORK)
        jumping = members[-1][1]
        for n in range(max(len(JUMPS), int(self.seconds / 0.7))):
            self._load()
            wait_out(0.7)
            jumping.set(JUMPS[n % len(JUMPS)])
            self.jumps += 1
        has_ended = self.arena.all_end(self.jobs)
        found = self.arena.violations(is_on_time=has_ended)
        return [*found, f"G11: {lost} times a lease was lost"] if (lost := self._leases_lost()) else found

    def _leases_lost(self) -> int:
        """By the workers' own words, how many of them ended, and how often jobs were taken from a worker."""
        members = self.arena.fleet.members
        said = sum(member.count("lease lost") + (not member.is_alive) for member in members)
        return said + self.arena.count("rescued")

    def _start(self, name: str, off: float) -> tuple[Member, Clock]:
        clock = Clock(self.library, self.folder / f"{name}.clock")
        clock.set(off)
        return self.arena.start(is_ready=False, env=clock.environment(), lease=LEASE_SECONDS), clock

    def _load(self) -> None:
        for delay in (None, timedelta(seconds=0.4), timedelta(seconds=1.3)):
            self.jobs += self.arena.enqueue("work", 5, delay=delay, seconds=0.05)
        self.jobs += self.arena.enqueue("retried", 3, seconds=0.05)


def widest_clocks(arena: Arena) -> Sequence[float]:
    """How far off the clocks of handlers were, against the server's: the least and the most, in seconds."""
    row = arena.board.rows("SELECT min(off), max(off) FROM (SELECT clock - extract(epoch FROM at) AS off FROM runs) r")
    return [float(value) for value in row[0]]
