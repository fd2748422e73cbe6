from __future__ import annotations

from collections import Counter
from datetime import timedelta
from math import floor, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.histogram import PER_OCTAVE, percentile

LENGTHS = st.lists(st.integers(1, 10**8), min_size=1, max_size=200)  # milliseconds


def counted(lengths: list[int]) -> Counter[int]:
    return Counter(floor(log2(each) * PER_OCTAVE) for each in lengths)


@given(LENGTHS, st.sampled_from([0.5, 0.95, 1.0]))
def test_a_percentile_is_right_to_within_its_bucket(lengths: list[int], share: float) -> None:
    longest = timedelta(milliseconds=max(lengths))

    found = percentile(counted(lengths), share, longest) / timedelta(milliseconds=1)

    at_rank = sorted(lengths)[max(0, -int(-share * len(lengths) // 1) - 1)]
    low, high = (2 ** ((floor(log2(at_rank) * PER_OCTAVE) + n) / PER_OCTAVE) for n in (0, 1))
    assert min(low, at_rank) * 0.999 <= found <= high * 1.001 or found <= 2
    assert found <= max(lengths)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_one_span_is_its_own_percentile_at_most(share: float) -> None:
    longest = timedelta(seconds=3)

    assert timedelta(seconds=2.5) < percentile(counted([3000]), share, longest) <= longest


def test_of_spans_under_a_millisecond_none_is_longer_than_the_longest() -> None:
    assert percentile({0: 5}, 0.95, timedelta(microseconds=300)) == timedelta(microseconds=300)
