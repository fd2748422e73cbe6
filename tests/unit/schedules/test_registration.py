"""How handlers get schedules, by decorators and by calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import jobq
from jobq.store.scheduling import _published

HOUR = timedelta(hours=1)


@pytest.fixture
def app() -> jobq.App:
    return jobq.App()


def test_decorators_above_a_handler_leave_it_as_it_is(app: jobq.App) -> None:
    @app.every(24 * HOUR, name="nightly-report")
    @app.cron("30 */6 * * *", tz="Europe/Paris", catch_up="skip")
    @app.when(lambda t: t.minute % 15 == 0, name="quarters")
    @app.handler("report")
    def report(day: int = 1) -> str:
        return f"day {day}"

    assert report(2) == "day 2"
    assert app.handlers["report"] is report
    found = {name: (each.schedule.form, each.args, each.job) for name, each in app.schedules.items()}
    assert found == {
        "quarters": ("when", "{}", report),
        "report": ("cron", "{}", report),
        "nightly-report": ("every", "{}", report),
    }


def test_a_call_gives_a_schedule_args_and_options(app: jobq.App) -> None:
    handler = app.handler("send")(send)

    app.schedule(jobq.cron("@daily", name="daily"), handler.options(queue="mail", delay=HOUR, timeout=HOUR), to="Ada")

    row = _published(app.schedules["daily"])
    assert row["job"] == (
        '{"args": {"to":"Ada"}, "meta": {"timeout": 3600.0}, "queue": "mail", "priority": 1, "delay": 3600.0,'
        ' "max_attempts": 5}'
    )


def send(to: str) -> None: ...


def test_a_kind_without_its_handler_can_be_scheduled(app: jobq.App) -> None:
    app.schedule(jobq.every(HOUR), jobq.kind("elsewhere", queue="q"), n=1)

    assert app.schedules["elsewhere"].args == '{"n":1}'


def test_a_second_schedule_of_a_handler_needs_a_name_and_both_places_are_told(app: jobq.App) -> None:
    handler: Any = app.every(HOUR)(app.handler("k")(lambda: None))

    with pytest.raises(jobq.RegistrationError, match="schedule 'k' is registered twice") as caught:
        app.cron("@daily")(handler)

    assert str(caught.value).count(f"{__file__}:") == 2
    assert 'name="..."' in str(caught.value)
    assert app.schedules["k"].schedule.form == "every"


@pytest.mark.parametrize("form", ["every", "cron", "when"])
def test_a_handler_below_a_decorator_must_need_no_arguments(app: jobq.App, form: str) -> None:
    decorators = {"every": app.every(HOUR), "cron": app.cron("@daily"), "when": app.when(lambda t: True)}

    with pytest.raises(jobq.RegistrationError, match=f"{form}: handler 'send' needs to; use app.schedule"):
        decorators[form](app.handler("send")(send))

    assert app.schedules == {}


def test_a_decorator_below_that_of_the_handler_is_refused(app: jobq.App) -> None:
    function: Any = send

    with pytest.raises(jobq.RegistrationError, match=r"put @app\.cron\(...\) above @app.handler"):
        app.cron("@daily")(function)


def test_wrong_args_are_refused_where_they_are_scheduled(app: jobq.App) -> None:
    handler: Any = app.handler("send")(send)

    with pytest.raises(jobq.ArgsError, match=r"args\.to: missing"):
        app.schedule(jobq.every(HOUR), handler)


def test_what_a_schedule_decides_itself_cannot_be_chosen(app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)

    with pytest.raises(jobq.OptionError, match="unique_key: that of a periodic job is schedule:"):
        app.schedule(jobq.every(HOUR), handler.options(unique_key="mine"))
    with pytest.raises(jobq.OptionError, match="run_at: the schedule says when"):
        app.schedule(jobq.every(HOUR), handler.options(run_at=datetime(2030, 1, 1, tzinfo=UTC)))


def test_only_schedules_and_kinds_are_scheduled(app: jobq.App) -> None:
    handler: Any = app.handler("k")(lambda: None)
    wrong: Any = "@daily"

    with pytest.raises(jobq.OptionTypeError, match=r"schedule: expected jobq.every\(...\)"):
        app.schedule(wrong, handler)
    with pytest.raises(jobq.OptionTypeError, match=r"handler: expected a function with @app\.handler"):
        app.schedule(jobq.every(HOUR), wrong)


def test_an_app_takes_over_the_schedules_of_a_registry_also_later_ones(app: jobq.App) -> None:
    registry = jobq.Registry()
    handler: Any = registry.every(HOUR)(registry.handler("k")(lambda: None))
    app.include(registry)
    registry.schedule(jobq.every(HOUR, name="later"), handler)
    app.include(registry)

    assert list(app.schedules) == ["k", "later"]
    assert app.schedules["later"] is registry.schedules["later"]


def test_two_registries_with_one_name_are_refused_and_nothing_is_taken_over(app: jobq.App) -> None:
    one, other = jobq.Registry(), jobq.Registry()
    for registry, kind in ((one, "a"), (other, "b")):
        registry.every(HOUR, name="same")(registry.handler(kind)(lambda: None))
    app.include(one)

    with pytest.raises(jobq.RegistrationError, match="schedule 'same' is registered twice"):
        app.include(other)

    assert list(app.handlers) == ["a"]
