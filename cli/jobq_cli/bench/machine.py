"""Processor time and memory, as Linux tells of them, and what kind of machine this is."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
IS_KNOWN = (PROC / "self" / "stat").exists()  # else nothing of it is measured


def cpu_of(pids: Iterable[int]) -> float:
    """Seconds of processor time of these processes, of all below them, and of those that they have waited for."""
    return sum(_cpu(pid) for pid in pids for pid in (pid, *_below(pid)))


def busy() -> float:
    """Seconds of processor time that all processes of the machine have used."""
    user, nice, system, _, _, irq, softirq, *_ = (PROC / "stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, irq, softirq))) / TICKS


def memory_of(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def kind() -> dict[str, str | int]:
    """What figures depend on."""
    return {
        "cores": os.cpu_count() or 0,
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "executable": Path(sys.executable).name,
    }


def _cpu(pid: int) -> float:
    try:
        return sum(map(int, _stat(pid)[11:15])) / TICKS
    except (OSError, ValueError):
        return 0.0  # it has just ended; who waited for it has its time


def _stat(pid: int) -> list[str]:
    """From the state on: the name before it is in parentheses, and may hold some itself."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _below(pid: int) -> Iterator[int]:
    for task in (PROC / str(pid) / "task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from _below(child)


def _processor() -> str:
    try:
        lines = (PROC / "cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@contextmanager
def on_one_core(pid: int) -> Iterator[None]:
    """Keep a process, all below it, and this one with all that it starts, on the first core that they may use."""
    ours, theirs = os.sched_getaffinity(0), os.sched_getaffinity(pid)
    first = {min(ours)}
    _pin({os.getpid()}, first)
    _pin({pid, *_below(pid)}, first)
    try:
        yield
    finally:
        _pin({os.getpid()}, ours)
        _pin({pid, *_below(pid)}, theirs)


def _pin(pids: set[int], cores: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has just ended
            os.sched_setaffinity(pid, cores)
