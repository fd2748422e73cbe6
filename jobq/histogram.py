"""Spans of time counted in buckets: enough for percentiles to within a tenth, small enough to keep by the minute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

PER_OCTAVE = 4  # bucket n holds spans from 2**(n/4) ms on, the first also all that are shorter


def percentile(counts: Mapping[int, int], share: float, longest: timedelta) -> timedelta:
    """What `share` of the counted spans stay below, as if each bucket were filled evenly; never over `longest`."""
    rank = share * sum(counts.values())
    passed = 0
    for bucket in sorted(counts):
        if passed + counts[bucket] >= rank:
            within = (rank - passed) / counts[bucket]
            low, high = _start(bucket), _start(bucket + 1)
            return min(timedelta(milliseconds=low + (high - low) * within), longest)
        passed += counts[bucket]
    return longest


def _start(bucket: int) -> float:
    return 0.0 if bucket == 0 else 2.0 ** (bucket / PER_OCTAVE)
