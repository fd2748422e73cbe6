from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from jobq.errors import OptionError, OptionTypeError
from jobq.handlers import Kind, kind
from jobq.options import Options, Settings

HOSTILE = ["x'; DROP TABLE jobs; --", '"; LISTEN y; --', "%s %(a)s {0}"]
BAD_NAMES = ["", "q" * 64, "q" * 200, "my queue; x", "é😀", "a\n", "a\0", "\ud800", *HOSTILE]


def any_kind() -> Kind[...]:
    return kind("k", queue="q")


@pytest.mark.parametrize("name", ["q", "Mixed-Case", "a.b:c/d_e-1", "q" * 63])
def test_f49_names_within_the_rule_are_kept_as_they_are(name: str) -> None:
    assert Options(queue=name).queue == name
    assert kind(name, queue=name).kind == name


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_f49_f67_names_outside_of_the_rule_are_refused(name: str) -> None:
    makers: list[Callable[[], Any]] = [
        lambda: any_kind().options(queue=name),
        lambda: kind(name, queue="q"),
        lambda: kind("k", queue=name),
        lambda: Settings(queue=name),
        lambda: Settings(executor=name),
    ]
    for make in makers:
        with pytest.raises(OptionError, match="digits"):
            make()


@pytest.mark.parametrize("priority", [0, 1, 2, 3])
def test_f21_priorities_go_from_0_to_3(priority: Any) -> None:
    assert Options(priority=priority).binds()["priority"] == priority


@pytest.mark.parametrize(
    "priority", [-5, 4, 5, 40_000, 2**31, 10**5000], ids=["-5", "4", "5", "40000", "2**31", "10**5000"]
)
def test_f21_other_priorities_are_errors_that_name_the_range(priority: Any) -> None:
    for make in (Options, Settings):
        with pytest.raises(OptionError, match="priority: from 0 to 3"):
            make(priority=priority)


@pytest.mark.parametrize("priority", [1.5, 1.0, "1", True, False], ids=repr)
def test_f21_a_priority_of_another_type_is_a_type_error(priority: Any) -> None:
    with pytest.raises(OptionTypeError, match="priority: expected an int from 0 to 3"):
        Options(priority=priority)


def test_f37_a_naive_run_at_is_refused() -> None:
    with pytest.raises(OptionError, match="run_at: naive datetime"):
        any_kind().options(run_at=datetime(2030, 6, 1, 12, 0))


@pytest.mark.parametrize("run_at", [date(2030, 6, 1), "2030-06-01T12:00:00Z", 1_900_000_000], ids=repr)
def test_f37_a_run_at_that_is_no_datetime_is_a_type_error(run_at: Any) -> None:
    with pytest.raises(OptionTypeError, match="run_at: expected an aware datetime"):
        any_kind().options(run_at=run_at)


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        (datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2030, 6, 1, 10, tzinfo=UTC)),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), datetime(1970, 1, 1, tzinfo=UTC)),
    ],
    ids=["an offset becomes UTC", "long ago is the same as now"],
)
def test_f37_an_aware_run_at_is_bound_as_the_same_instant(given: datetime, bound: datetime) -> None:
    assert Options(run_at=given).binds()["run_at"] == bound


def test_a_run_at_that_python_could_not_read_back_is_refused() -> None:
    with pytest.raises(OptionError, match="before the year 9000"):
        Options(run_at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))))


@pytest.mark.parametrize("option", ["delay", "timeout", "keep"])
@pytest.mark.parametrize("span", [timedelta(-1), timedelta.max, timedelta.min, timedelta(days=3651)], ids=str)
def test_f03_spans_out_of_range_are_refused(option: str, span: timedelta) -> None:
    given: dict[str, Any] = {option: span}
    with pytest.raises(OptionError, match=option):
        Options(**given)


@pytest.mark.parametrize("option", ["delay", "timeout", "keep"])
@pytest.mark.parametrize("span", [float("nan"), float("inf"), -1, 5, "5 minutes", True], ids=repr)
def test_f03_a_span_is_a_timedelta_and_so_never_nan(option: str, span: Any) -> None:
    given: dict[str, Any] = {option: span}
    with pytest.raises(OptionTypeError, match=f"{option}: expected a timedelta"):
        Options(**given)


def test_only_a_timeout_of_zero_makes_no_sense() -> None:
    assert Options(delay=timedelta(0), keep=timedelta(0)).binds()["delay"] == 0
    for make in (Options, Settings):
        with pytest.raises(OptionError, match="timeout: more than 0"):
            make(timeout=timedelta(0))


@pytest.mark.parametrize("attempts", [0, -1, 32768])
def test_max_attempts_out_of_range_are_refused(attempts: int) -> None:
    for make in (Options, Settings):
        with pytest.raises(OptionError, match="max_attempts: from 1 to 32767"):
            make(max_attempts=attempts)


def test_run_at_and_delay_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="run_at and delay"):
        any_kind().options(run_at=datetime.now(UTC), delay=timedelta(1))
    with pytest.raises(OptionError, match="run_at and delay"):
        any_kind().options(run_at=datetime.now(UTC)).options(delay=timedelta(1))


@pytest.mark.parametrize("key", ["k", "é" * 100, "k" * 200, *HOSTILE, " ", "\n"], ids=ascii)
def test_f67_a_unique_key_is_plain_data(key: str) -> None:
    assert Options(unique_key=key).binds()["unique_key"] == key


@pytest.mark.parametrize("key", ["", "k" * 201, "é" * 101, "a\0b", "\ud800"], ids=ascii)
def test_a_unique_key_that_cannot_be_stored_is_refused(key: str) -> None:
    with pytest.raises(OptionError, match="unique_key"):
        Options(unique_key=key)


@pytest.mark.parametrize(
    "unique", [["a"], "a", 1, ("a", 1)], ids=["a list", "a str", "an int", "a tuple that holds an int"]
)
def test_unique_is_a_bool_or_a_tuple_of_names(unique: Any) -> None:
    with pytest.raises(OptionTypeError, match="unique: expected"):
        Options(unique=unique)


@pytest.mark.parametrize("unique", [(), ("a,b",), ("",)], ids=repr)
def test_unique_names_arguments(unique: tuple[str, ...]) -> None:
    with pytest.raises(OptionError, match="unique"):
        Options(unique=unique)


def test_a_key_is_given_or_derived_not_both() -> None:
    with pytest.raises(OptionError, match="given or derived"):
        Options(unique_key="k", unique=True)
    assert Options(unique_key="k", unique=False).binds()["unique_names"] is None


@pytest.mark.parametrize(("unique", "names"), [(True, ""), (("a", "b"), "a,b"), (False, None), (None, None)])
def test_unique_is_bound_as_a_text(unique: Any, names: str | None) -> None:
    assert Options(unique=unique).binds()["unique_names"] == names


@pytest.mark.parametrize("option", ["Replace", "no", ""])
def test_on_conflict_is_one_of_the_words(option: Any) -> None:
    with pytest.raises(OptionError, match="on_conflict: 'ignore' or 'replace' or 'reschedule' or 'raise', got"):
        Options(on_conflict=option)


def test_max_wait_goes_with_rescheduling_and_is_not_less_than_the_delay() -> None:
    second, minute = timedelta(seconds=1), timedelta(minutes=1)
    Options(unique_key="k", on_conflict="reschedule", delay=minute, max_wait=minute).demand_sense()

    with pytest.raises(OptionError, match="max_wait: at least the delay of 0:01:00, got 0:00:01"):
        Options(delay=minute, max_wait=second)
    with pytest.raises(OptionError, match="max_wait: at least the delay"):
        any_kind().options(max_wait=second).options(delay=minute)
    with pytest.raises(OptionError, match="max_wait: more than 0"):
        Options(max_wait=timedelta(0))
    with pytest.raises(OptionError, match="max_wait: goes with on_conflict='reschedule' alone"):
        Options(unique_key="k", max_wait=minute).demand_sense()


@pytest.mark.parametrize("word", ["replace", "reschedule"])
def test_changing_who_holds_a_key_needs_a_key(word: Any) -> None:
    Options(unique=True, on_conflict=word).demand_sense()
    Options(unique_key="k", on_conflict=word).demand_sense()
    with pytest.raises(OptionError, match=f"on_conflict: '{word}' needs a key, give unique_key or unique"):
        Options(on_conflict=word).demand_sense()


@pytest.mark.parametrize("given", [ValueError, [ValueError], ("ValueError",), (int,), (ValueError("no"),), None])
def test_no_retry_on_is_a_tuple_of_exceptions(given: Any) -> None:
    assert Settings(no_retry_on=(ValueError, KeyboardInterrupt)).no_retry_on == (ValueError, KeyboardInterrupt)
    assert Settings().no_retry_on == ()
    with pytest.raises(OptionTypeError, match="no_retry_on: expected a tuple of exception classes"):
        Settings(no_retry_on=given)


def test_a_retry_policy_can_be_called() -> None:
    wrong: Any = timedelta(1)
    with pytest.raises(OptionTypeError, match="retry"):
        Settings(retry=wrong)


@pytest.mark.parametrize("option", ["queue", "priority", "max_attempts", "retry", "unique", "executor"])
def test_what_a_handler_must_settle_cannot_be_none(option: str) -> None:
    nothing: dict[str, Any] = {option: None}
    with pytest.raises(OptionTypeError, match=option):
        Settings(**nothing)


def test_enums_are_taken_for_their_values() -> None:
    class Level(IntEnum):
        HIGH = 0

    class Queue(StrEnum):
        EMAIL = "email"

    level: Any = Level.HIGH
    binds = Options(queue=Queue.EMAIL, priority=level).binds()
    assert type(binds["queue"]) is str
    assert type(binds["priority"]) is int


def test_options_of_a_copy_win_and_the_original_stays() -> None:
    first = any_kind().options(priority=3, keep=timedelta(hours=1))
    second = first.options(priority=0)

    assert first.effective().priority == 3
    assert second.effective() == Options(queue="q", priority=0, keep=timedelta(hours=1))


def test_meta_holds_only_what_options_say_in_seconds() -> None:
    assert json.loads(Options().binds()["meta"]) == {}
    meta = Options(timeout=timedelta(seconds=1.5), keep=timedelta(days=1)).binds()["meta"]
    assert json.loads(meta) == {"timeout": 1.5, "keep": 86400.0}


def test_what_settings_say_of_time_stays_with_the_handler() -> None:
    options = Settings(timeout=timedelta(1), keep=timedelta(1), max_attempts=8).as_options()
    assert options == Options(queue="default", priority=1, max_attempts=8)


def test_a_job_is_later_when_it_surely_is() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert Options(delay=timedelta(1)).is_later(now)
    assert Options(run_at=now + timedelta(1)).is_later(now)
    assert not Options(delay=timedelta(0)).is_later(now)
    assert not Options(run_at=now).is_later(now)
    assert not Options().is_later(now)
