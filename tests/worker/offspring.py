"""The children that workers of this process have; other tests of the process may have started programs of theirs."""

from __future__ import annotations

import psutil


def children() -> set[int]:
    """Pids of the running children, and of dead ones that nobody has waited for."""
    return {child.pid for child in psutil.Process().children() if _is_ours(child)}


def _is_ours(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE or "jobq.child" in process.cmdline()
    except psutil.NoSuchProcess:
        return False
