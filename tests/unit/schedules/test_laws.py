"""The laws of ticks, whatever the schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import available_timezones

from hypothesis import given, settings
from hypothesis import strategies as st

import jobq
from jobq.schedule import MOST_CAUGHT_UP, TOLERANCE, Schedule, Step, Watch, next_step
from jobq.schedule.base import MOST_REMEMBERED, CatchUp, Passed

ZONES = sorted(available_timezones())
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))
FIELD = st.sampled_from(["*", "*/5", "*/7", "0", "30", "0,30", "15-45/10"])
HOUR = st.sampled_from(["*", "*/2", "*/6", "0", "1", "2", "23", "0,2", "1-3"])
DAY = st.sampled_from(["*", "1", "*/9", "15,L"])
CRONS = st.builds(
    lambda minute, hour, day, tz: jobq.cron(f"{minute} {hour} {day} * *", tz=tz),
    FIELD, HOUR, DAY, st.sampled_from(ZONES),
)  # fmt: skip
SPANS = st.timedeltas(timedelta(seconds=1), timedelta(days=40))
PREDICATES = st.integers(1, 50).map(lambda n: jobq.when(lambda t: t.minute % n == 0))
SCHEDULES: st.SearchStrategy[Schedule] = CRONS | SPANS.map(jobq.every) | PREDICATES


@given(SCHEDULES, MOMENTS)
def test_ticks_come_after_the_moment_and_each_after_the_one_before(schedule: Schedule, moment: datetime) -> None:
    ticks = [moment, *islice(schedule.upcoming(moment), 5)]

    assert all(before < after for before, after in pairwise(ticks))
    assert {tick.utcoffset() for tick in ticks} == {timedelta(0)}


@given(SCHEDULES, MOMENTS, st.floats(0, 1))
def test_no_tick_is_lost_between_two_looks(schedule: Schedule, moment: datetime, share: float) -> None:
    """Wherever between two ticks one asks, the next one is the same."""
    first, second = islice(schedule.upcoming(moment), 2)

    assert schedule.next_after(first + share * (second - first) * 0.999) == second
    assert schedule.next_after(first - timedelta(microseconds=1)) == first


@given(SCHEDULES, MOMENTS, st.timedeltas(timedelta(0), timedelta(hours=9)))
def test_what_has_passed_is_what_was_to_come(schedule: Schedule, after: datetime, length: timedelta) -> None:
    until = after + length
    ticks = [*schedule.upcoming(after, until)]

    assert schedule.passed(after, until) == Passed(len(ticks), tuple(ticks[-MOST_REMEMBERED:]))


@given(SPANS, MOMENTS, st.lists(st.timedeltas(timedelta(0), timedelta(days=3)), max_size=5))
def test_a_span_is_not_pushed_away_by_restarts(span: timedelta, moment: datetime, restarts: list[timedelta]) -> None:
    """Each process that starts computes the ticks anew: they are multiples since 1970, whoever asks and when."""
    for later in restarts:
        tick = jobq.every(span).next_after(moment + later)
        assert tick is not None
        assert (tick - datetime(1970, 1, 1, tzinfo=UTC)) % span == timedelta(0)
        assert tick - (moment + later) <= span


@given(CRONS, MOMENTS, st.lists(st.timedeltas(timedelta(0), timedelta(days=2)), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_watch_sees_in_strides_what_has_passed_in_one(
    schedule: Schedule, settled: datetime, looks: list[timedelta]
) -> None:
    watch, now = Watch(schedule, settled), settled
    for length in looks:
        now += length
        while not watch.look(settled, now):
            pass

    assert watch.passed == schedule.passed(settled, now)
    assert watch.looked == now
    assert watch.next_tick(timedelta(days=1)) == schedule.next_after(now, now + timedelta(days=1))


@given(
    SPANS.map(jobq.every),
    MOMENTS,
    st.sampled_from(["once", "skip", "all"]),
    st.lists(st.tuples(st.timedeltas(timedelta(0), timedelta(days=60)), st.booleans()), min_size=1, max_size=30),
)
def test_each_tick_has_one_fate(
    schedule: Schedule, begun: datetime, catch_up: CatchUp, looks: list[tuple[timedelta, bool]]
) -> None:
    """However long nobody looks, and whether or not the copy before is open."""
    settled = now = begun
    fates = 0
    for length, is_open in looks:
        now += length
        passed = schedule.passed(settled, now)
        step = next_step(passed, catch_up=catch_up, now=now, is_open=is_open)
        if step is not None:
            assert settled < step.tick <= now
            fates += step.missed + step.fires
            settled = step.tick
    assert fates == schedule.passed(begun, settled).count


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def passed_of(count: int, *, last_ago: timedelta = timedelta(0)) -> Passed:
    last = NOW - last_ago
    return Passed(count, tuple(last - n * timedelta(hours=1) for n in reversed(range(min(count, MOST_REMEMBERED)))))


def test_nothing_has_passed_and_nothing_is_to_be_done() -> None:
    assert next_step(Passed(0, ()), catch_up="once", now=NOW, is_open=False) is None


def test_once_fires_the_last_and_the_others_are_missed() -> None:
    assert next_step(passed_of(7), catch_up="once", now=NOW, is_open=False) == Step(NOW, 6, fires=True)
    assert next_step(passed_of(7), catch_up="once", now=NOW, is_open=True) == Step(NOW, 6, fires=True)


def test_skip_fires_what_is_hardly_late_and_nothing_else() -> None:
    late, too_late = (passed_of(7, last_ago=TOLERANCE + more) for more in (timedelta(0), timedelta(microseconds=1)))

    assert next_step(late, catch_up="skip", now=NOW, is_open=False) == Step(late.last[-1], 6, fires=True)
    assert next_step(too_late, catch_up="skip", now=NOW, is_open=False) == Step(too_late.last[-1], 7, fires=False)


def test_all_fires_the_oldest_and_the_next_one_when_that_has_ended() -> None:
    passed = passed_of(7)

    assert next_step(passed, catch_up="all", now=NOW, is_open=False) == Step(passed.last[0], 0, fires=True)
    assert next_step(passed, catch_up="all", now=NOW, is_open=True) is None


def test_all_are_a_hundred_at_most() -> None:
    passed, most = passed_of(1000), passed_of(MOST_CAUGHT_UP)

    step = next_step(passed, catch_up="all", now=NOW, is_open=True)

    assert step == Step(NOW - MOST_CAUGHT_UP * timedelta(hours=1), 900, fires=False)
    assert next_step(most, catch_up="all", now=NOW, is_open=False) == Step(most.last[0], 0, fires=True)


def test_a_clock_that_is_stepped_back_is_begun_with_anew() -> None:
    watch = Watch(jobq.every(timedelta(hours=1)), NOW)
    watch.look(NOW, NOW + timedelta(hours=5))

    assert watch.look(NOW, NOW + timedelta(hours=2))

    assert watch.passed.count == 2
