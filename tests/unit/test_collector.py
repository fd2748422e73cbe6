"""What a worker's process spares the garbage collector."""

from __future__ import annotations

import subprocess
import sys

COUNTING = """
import gc
import jobq.worker
from jobq.worker.collector import spare_what_stays

before = len(gc.get_objects())
spare_what_stays()
print(before, len(gc.get_objects()), gc.get_freeze_count())
"""


def test_what_a_worker_has_loaded_is_walked_through_no_more() -> None:
    said = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True).stdout.split()
    before, after, frozen = map(int, said[:3])

    assert after < 1_000 < before
    assert frozen >= before - 1_000
