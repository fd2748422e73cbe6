from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.model import Position
from jobq.notify import MOST_QUEUES, TokenBucket, parse


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def taken(bucket: TokenBucket, queue: str, tries: int) -> int:
    return sum(bucket.take(queue) for _ in range(tries))


def test_a_burst_is_let_through_and_then_the_rate(clock: Clock) -> None:
    bucket = TokenBucket(rate=50, burst=50, clock=clock)

    assert taken(bucket, "q", 200) == 50
    clock.now = 0.5
    assert taken(bucket, "q", 200) == 25


def test_tokens_are_saved_up_to_the_burst_and_no_further(clock: Clock) -> None:
    bucket = TokenBucket(rate=50, burst=10, clock=clock)
    taken(bucket, "q", 10)

    clock.now = 3600.0
    assert taken(bucket, "q", 200) == 10


def test_queues_do_not_take_each_others_tokens(clock: Clock) -> None:
    bucket = TokenBucket(rate=1, burst=1, clock=clock)

    assert bucket.take("a")
    assert not bucket.take("a")
    assert bucket.take("b")


def test_any_number_of_queues_takes_bounded_memory(clock: Clock) -> None:
    bucket = TokenBucket(clock=clock)

    for n in range(MOST_QUEUES + 100):
        bucket.take(f"tenant-{n}")

    assert len(bucket._levels) == MOST_QUEUES


@pytest.mark.parametrize(
    ("payload", "position"),
    [
        ("email|0|0", Position("email", 0, datetime(1970, 1, 1, tzinfo=UTC))),
        ("a.b:c/d|3|1893456000.5", Position("a.b:c/d", 3, datetime(2030, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC))),
        ("q|1|1893456000.000001", Position("q", 1, datetime(2030, 1, 1, 0, 0, 0, 1, tzinfo=UTC))),
    ],
)
def test_a_notification_is_read(payload: str, position: Position) -> None:
    assert parse(payload) == position


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "email",
        "email|1",
        "email|1|",
        "email|4|0",
        "email|-1|0",
        "email|1|-5",
        "email|1|nan",
        "email|1|1e9",
        "email|1|0.1234567",
        "email|1|99999999999999999999",
        "email|1|100000000000",
        "email|１|0",
        "email|1|０",
        "email|1|0\n",
        "|1|0",
        "a b|1|0",
        "a|b|1|0",
        "q" * 64 + "|1|0",
        "x'; DROP TABLE jobs; --|1|0",
    ],
    ids=ascii,
)
def test_a_notification_that_jobq_would_not_write_is_ignored(payload: str) -> None:
    assert parse(payload) is None


@given(st.text())
def test_no_text_can_make_the_reader_fail(payload: str) -> None:
    parse(payload)


@given(st.datetimes(datetime(1970, 1, 1), datetime(5000, 1, 1), timezones=st.just(UTC)))
def test_times_are_read_to_the_microsecond(run_at: datetime) -> None:
    seconds, fraction = divmod(run_at - datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1))
    position = parse(f"q|1|{seconds}.{fraction // timedelta(microseconds=1):06}")
    assert position == Position("q", 1, run_at)
