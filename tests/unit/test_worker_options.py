from __future__ import annotations

import dataclasses
import inspect
from datetime import timedelta
from typing import Any, get_type_hints

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from jobq.errors import JobqError, OptionError, OptionTypeError
from jobq.worker import Worker
from jobq.worker.options import WorkerOptions
from jobq.worker.stats import Counters, WorkerStats

SECOND = timedelta(seconds=1)
OUT_OF_RANGE = {
    "queues": [[], (), [""], ["my queue"], ["a\n"], ["q" * 64], ["good", "x'; DROP TABLE jobs; --"], ["\ud800"], [5]],
    "concurrency": [0, -1, 10_001, 10**30],
    "processes": [0, -1, 1_001],
    "max_jobs_per_child": [0, -1, 10**10],
    "max_memory_per_child": [0, 15, 1 << 40],
    "lease": [timedelta(0), -SECOND, timedelta(milliseconds=9), timedelta(days=1, seconds=1), timedelta.max],
    "grace": [-SECOND, timedelta(days=1, seconds=1), timedelta.max],
    "poll_interval": [timedelta(0), -SECOND, timedelta.max],
    "stall": [timedelta(0), -SECOND, timedelta.max],
    "listen_url": ["", "nowhere", "mysql://me@db/shop", "postgresql://me:p@ss@db/shop"],
    "name": ["", "n" * 201, "two\nlines", "nul\x00", "\ud800", "\x1b[31m"],
}
OF_ANOTHER_TYPE = {
    "queues": ["email", b"email", 5, {"email"}, {"email": 1}],
    "concurrency": [True, 1.0, "20", None],
    "processes": [True, 2.0, "2"],
    "max_jobs_per_child": [True, 2.0, "2"],
    "max_memory_per_child": [True, 2.0, "512M"],
    "lease": [60, 60.0, "60s", None],
    "grace": [30, None],
    "poll_interval": [1, float("nan"), None],
    "stall": [300, "5m"],
    "name": [5, b"name"],
    "listen": [1, "yes", None],
    "pooler": [1, "yes", None],
    "listen_url": [5, b"postgresql://db/shop"],
}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}={ascii(value)[:30]}")
        for name, values in table.items()
        for value in values
    ]


def test_what_nobody_sets_is_as_documented() -> None:
    options = WorkerOptions()

    assert options.queues is None
    assert options.concurrency == 20
    assert (options.lease, options.grace, options.poll_interval) == (60 * SECOND, 30 * SECOND, SECOND)
    assert options.listen
    assert options.listens
    assert not options.pooler


@pytest.mark.parametrize(
    ("values", "listens"),
    [
        pytest.param({"pooler": True}, False, id="nothing comes through a pooler"),
        pytest.param({"pooler": True, "listen_url": "postgresql://db/shop"}, True, id="but past it"),
        pytest.param({"listen_url": "postgresql://db/shop", "listen": False}, False, id="unless it is told not to"),
    ],
)
def test_a_worker_listens_where_notifications_can_come_from(values: dict[str, Any], listens: bool) -> None:
    assert WorkerOptions(**values).listens is listens


@pytest.mark.parametrize(("name", "value"), cases(OUT_OF_RANGE))
def test_f65_a_value_out_of_range_is_an_error_that_names_the_option(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"^{name}\\b") as caught:
        WorkerOptions(**{name: value})
    assert isinstance(caught.value, JobqError)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(("name", "value"), cases(OF_ANOTHER_TYPE))
def test_a_value_of_another_type_is_an_error_that_names_the_option(name: str, value: Any) -> None:
    with pytest.raises(OptionTypeError, match=f"^{name} must be"):
        WorkerOptions(**{name: value})


def test_f65_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(OptionError) as caught:
        WorkerOptions(queues=["a b"], concurrency=0, lease=60, name="", pooler="yes")  # type: ignore[arg-type]

    assert str(caught.value).split("; ") == [
        "queues: 'a b' is no name (1 to 63 of letters, digits, _ . - : /)",
        "concurrency must be from 1 to 10000, got 0",
        "lease must be a timedelta, got int",
        "name must be 1 to 200 printable characters, got ''",
        "pooler must be a bool, got str",
    ]


def test_several_values_of_another_type_are_an_error_of_types() -> None:
    with pytest.raises(
        OptionTypeError, match="concurrency must be an int, got str; lease must be a timedelta, got int"
    ):
        WorkerOptions(concurrency="20", lease=60)  # type: ignore[arg-type]


def test_a_worker_takes_each_of_its_options_as_a_keyword_with_the_same_default() -> None:
    keywords = inspect.signature(Worker).parameters
    options = {each.name: each.default for each in dataclasses.fields(WorkerOptions)}

    assert {name: keywords[name].default for name in options if name in keywords} == options
    assert {each.kind for name, each in keywords.items() if name in options} == {inspect.Parameter.KEYWORD_ONLY}
    others = {"app", "engine", "executors", "app_path"}
    assert keywords.keys() - options.keys() == others


def test_the_keywords_of_a_worker_have_the_types_of_its_options() -> None:
    keywords, options = (
        get_type_hints(Worker.__init__, localns={"AsyncEngine": AsyncEngine}),
        get_type_hints(WorkerOptions),
    )

    assert {name: keywords[name] for name in options} == options


@pytest.mark.parametrize(
    "values",
    [
        {"queues": ["a", "b.c:d/e-f_1"]},
        {"queues": ("q" * 63,)},
        {"concurrency": 1},
        {"concurrency": 10_000},
        {"lease": timedelta(milliseconds=10)},
        {"lease": timedelta(days=1)},
        {"grace": timedelta(0)},
        {"stall": SECOND},
        {"stall": None},
        {"name": "caf\u00e9 1"},
        {"listen": False},
        {"pooler": True},
        {"listen_url": "postgres://me@db/shop"},
    ],
    ids=str,
)
def test_values_within_the_range_are_kept(values: dict[str, Any]) -> None:
    options = WorkerOptions(**values)

    assert {name: getattr(options, name) for name in values} == values


@pytest.mark.parametrize(
    ("lease", "stall", "after"),
    [(60, None, 300), (600, None, 600), (60, 5, 5), (600, 5, 5)],
)
def test_a_worker_ends_itself_after_the_longer_of_lease_and_five_minutes_or_as_asked(
    lease: int, stall: int | None, after: int
) -> None:
    options = WorkerOptions(lease=lease * SECOND, stall=None if stall is None else stall * SECOND)

    assert options.stall_after == after * SECOND


@pytest.mark.parametrize(("lease", "interval"), [(0.1, 0.5), (3, 0.5), (6, 1), (30, 5), (60, 10), (3_600, 10)])
def test_a_rescue_looks_six_times_a_lease_within_half_a_second_and_ten(lease: float, interval: float) -> None:
    assert WorkerOptions(lease=lease * SECOND).rescue_interval == interval * SECOND


def test_counters_are_what_a_snapshot_shows() -> None:
    counters = Counters()
    for word in ("ok", "fail", "skip", "retry", "dead", "snooze"):
        counters.count(word)
    counters.count("ok", 4)

    assert (counters.ok, counters.fail, counters.skip) == (5, 1, 1)
    assert (counters.retry, counters.dead, counters.snooze) == (1, 1, 1)
    shown = {field.name for field in dataclasses.fields(WorkerStats)}
    assert {field.name for field in dataclasses.fields(Counters)} <= shown
