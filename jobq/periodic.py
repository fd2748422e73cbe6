"""What schedules enqueue: the periodic jobs of an App or of a Registry, and the decorators that add them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType, MappingProxyType
from zoneinfo import ZoneInfo

from jobq import checks
from jobq.errors import OptionError, OptionTypeError, RegistrationError
from jobq.handlers import Handler, Kind, P, R, needs_kind
from jobq.schedule import CatchUp, Predicate, Schedule
from jobq.schedule import cron as cron_schedule
from jobq.schedule import every as every_schedule
from jobq.schedule import when as when_schedule

NO_ARGS = "{}"
KEY = "schedule:"  # before the name: the unique key of a schedule's jobs


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A schedule, and the job that it enqueues: a kind with its options, and the JSON text of the args."""

    name: str
    schedule: Schedule
    job: Kind[...]
    args: str
    place: str


class Periodic:
    """Holds periodic jobs by the names of their schedules."""

    def __init__(self) -> None:
        self._periodic: dict[str, PeriodicJob] = {}
        self._holders: list[Periodic] = [self]  # who gets what is added: this one, and what it is included in

    @property
    def schedules(self) -> Mapping[str, PeriodicJob]:
        """The periodic jobs by the names of their schedules."""
        return MappingProxyType(self._periodic)

    def every(
        self,
        span: timedelta,
        /,
        *,
        name: str | None = None,
        tz: str | ZoneInfo = "UTC",
        catch_up: CatchUp = "once",
    ) -> Callable[[Handler[P, R]], Handler[P, R]]:
        """Enqueue the handler below at each multiple of `span` since 1970-01-01 UTC; see `jobq.every`.

        `name`: the kind, unless it is given. Raises: OptionError, OptionTypeError; RegistrationError for a handler that
        needs arguments, or when the name is taken.
        """
        return self._above(every_schedule(span, name=name, tz=tz, catch_up=catch_up))

    def cron(
        self,
        expression: str,
        /,
        *,
        name: str | None = None,
        tz: str | ZoneInfo = "UTC",
        catch_up: CatchUp = "once",
    ) -> Callable[[Handler[P, R]], Handler[P, R]]:
        """Enqueue the handler below at the times of a crontab expression; see `jobq.cron`.

        `name` and Raises: as `every`.
        """
        return self._above(cron_schedule(expression, name=name, tz=tz, catch_up=catch_up))

    def when(
        self,
        predicate: Predicate,
        /,
        *,
        name: str | None = None,
        tz: str | ZoneInfo = "UTC",
        catch_up: CatchUp = "once",
    ) -> Callable[[Handler[P, R]], Handler[P, R]]:
        """Enqueue the handler below in the minutes that a predicate is true for; see `jobq.when`.

        `name` and Raises: as `every`.
        """
        return self._above(when_schedule(predicate, name=name, tz=tz, catch_up=catch_up))

    def schedule(self, schedule: Schedule, job: Kind[P], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Enqueue a job with these arguments at each tick of a schedule.

        What the decorators do, for handlers with arguments or with options (`handler.options(...)`); run_at and unique
        keys are the schedule's own. The name is the schedule's, else the kind. Raises: as `every`, and ArgsError.
        """
        if not isinstance(schedule, Schedule):
            known = "jobq.every(...), jobq.cron(...) or jobq.when(...)"
            raise OptionTypeError(f"schedule: expected {known}, got {checks.show(schedule)}")
        kind = needs_kind(job)
        _refuse_options(kind)
        self._add_periodic(schedule, kind, kind.encode(args, kwargs), place_of(sys._getframe(1)))

    def _above(self, schedule: Schedule) -> Callable[[Handler[P, R]], Handler[P, R]]:
        def add(handler: Handler[P, R]) -> Handler[P, R]:
            if not isinstance(handler, Handler):
                raise RegistrationError(f"{schedule.form}: put @app.{schedule.form}(...) above @app.handler(...)")
            if not handler.codec.can_be_called_without_arguments:
                missing = ", ".join(sorted(handler.codec.required))
                call = f"app.schedule(jobq.{schedule.form}(...), handler, {missing}=...)"
                raise RegistrationError(f"{schedule.form}: handler {handler.kind!r} needs {missing}; use {call}")
            self._add_periodic(schedule, handler, NO_ARGS, place_of(sys._getframe(1)))
            return handler

        return add

    def _add_periodic(self, schedule: Schedule, job: Kind[...], args: str, place: str) -> None:
        added = PeriodicJob(schedule.name or job.kind, schedule, job, args, place)
        for holder in self._holders:
            holder._refuse_schedule(added)
        for holder in self._holders:
            holder._periodic[added.name] = added

    def _refuse_schedule(self, added: PeriodicJob) -> None:
        taken = self._periodic.get(added.name, added)
        if taken is not added:
            raise RegistrationError(
                f"schedule {added.name!r} is registered twice: at {taken.place} and at {added.place}"
                ' (the name is the kind unless given: name="...")'
            )

    def _refuse_schedules(self, other: Periodic) -> None:
        for added in other._periodic.values():
            self._refuse_schedule(added)

    def _take_schedules(self, other: Periodic) -> None:
        """Those of another one, also those that it gets later."""
        self._periodic.update(other._periodic)
        if self not in other._holders:
            other._holders.append(self)


def _refuse_options(kind: Kind[...]) -> None:
    chosen = kind.effective()
    if chosen.run_at is not None:
        raise OptionError("run_at: the schedule says when (delay is counted from each tick)")
    if chosen.unique_key is not None:
        raise OptionError(f"unique_key: that of a periodic job is {KEY} and the schedule's name")


def place_of(frame: FrameType) -> str:
    """file:line, as errors about a registration name it."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
