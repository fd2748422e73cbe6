"""How much memory a process uses. Linux alone says it of another process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MIB = 1 << 20
CAN_BE_WATCHED = sys.platform == "linux"


def used_mib(pid: int) -> float:
    """What it has in memory (RSS); 0 when it is gone.

    Watched rather than limited with RLIMIT_AS: that counts what is only reserved, gigabytes for some libraries, and
    ends in a MemoryError at some place, or a crash, where this ends in one clear error.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB
