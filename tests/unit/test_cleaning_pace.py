from __future__ import annotations

from jobq.cleaner import LEAST, MOST, Cleaning


def test_a_slow_chunk_halves_the_next_and_quick_ones_double_it() -> None:
    cleaning = Cleaning()
    sizes = []

    for seconds in (0.9, 0.9, 0.3, 0.01, 0.01, 0.01):
        cleaning.took(seconds)
        sizes.append(cleaning.size)

    assert sizes == [5_000, 2_500, 2_500, 5_000, 10_000, 10_000]


def test_a_chunk_is_never_smaller_than_the_least_nor_larger_than_the_most() -> None:
    slow, quick = Cleaning(), Cleaning()

    for _ in range(20):
        slow.took(60.0)
        quick.took(0.0)

    assert (slow.size, quick.size) == (LEAST, MOST)


def test_the_pause_is_as_long_as_the_chunk_took_and_a_second_at_most() -> None:
    cleaning = Cleaning()

    cleaning.took(0.2)
    assert cleaning.pause_seconds == 0.2
    cleaning.took(30.0)
    assert cleaning.pause_seconds == 1.0
