"""Errors, traces and cron check-ins for Sentry. Needs the extra: `jobq[sentry]`.

`install(app)` after `sentry_sdk.init(...)`, in the module that holds the app.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

import sentry_sdk
from sentry_sdk.crons import capture_checkin
from sentry_sdk.crons.consts import MonitorStatus
from sentry_sdk.integrations.logging import ignore_logger

from jobq.context import CurrentJob, current
from jobq.events import ErrorEvent
from jobq.masking import mask_all
from jobq.outcomes import PauseQueue, Snooze
from jobq.outgoing import Outgoing, carried_in, watchers
from jobq.registry import App

if TYPE_CHECKING:
    from sentry_sdk._types import Event, Hint, MonitorConfig
    from sentry_sdk.tracing import Span

    from jobq.schedule import Schedule

ORIGIN = "auto.queue.jobq"
TRACE = "__jobq_trace__"  # on an exception: which span of which trace it came from
LONGEST_SLUG = 50
PLAIN_CRONTAB = re.compile(r"(?!.*(#|\bL|[0-9]L))\S+( \S+){4}|@(hourly|daily|weekly|monthly|yearly)", re.IGNORECASE)


def install(app: App, *, every_attempt: bool = False, local_variables: bool = False) -> None:
    """Report the errors of this app's jobs, continue the traces of their enqueues, and check in for its schedules.

    Only a job's last failure is reported, unless `every_attempt`; and the first of a run of failures of the worker
    itself. Events are tagged with queue, kind and attempt; the args are not sent, and since they are local variables
    of the handler, no local variables are, unless `local_variables`. A schedule's monitor has its name as slug, in
    small letters and with - for what a slug cannot hold. A second call changes nothing.
    """
    if any(isinstance(each, _Jobs) for each in app.around_factories):
        return
    ignore_logger("jobq.job")  # its line about a dead job would be a second event
    app.on_error(_Reporter(every_attempt=every_attempt, local_variables=local_variables))
    app.around(_Jobs(app), outermost=True)
    if _watch not in watchers:
        watchers.append(_watch)


class _Reporter:
    """An `on_error` callback."""

    def __init__(self, *, every_attempt: bool, local_variables: bool) -> None:
        self._every_attempt = every_attempt
        self._local_variables = local_variables

    def __call__(self, event: ErrorEvent) -> None:
        if not (event.final or self._every_attempt or event.job is None):
            return
        with sentry_sdk.new_scope() as scope:
            if event.job is not None:
                scope.set_tags(_tags(event.job))
                scope.set_context("jobq", _about(event.job))
                scope.set_transaction_name(event.job.kind, source="task")
            if (trace := getattr(event.error, TRACE, None)) is not None:
                scope.set_context("trace", trace)
            if not self._local_variables:
                scope.add_event_processor(_without_variables)
            scope.add_event_processor(_without_secrets)
            sentry_sdk.capture_exception(event.error)


class _Jobs:
    """Around one attempt, in the task or thread of its handler: a scope and a transaction of its own."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self) -> AbstractContextManager[None]:
        return self._around(current().job, carried_in(current().meta))

    @contextmanager
    def _around(self, job: CurrentJob, carried: Mapping[str, str]) -> Iterator[None]:
        put_off: Exception | None = None
        with sentry_sdk.isolation_scope() as scope:
            scope.set_tags(_tags(job))
            made = sentry_sdk.continue_trace(
                dict(carried), op="queue.process", name=job.kind, source="task", origin=ORIGIN
            )
            with sentry_sdk.start_transaction(made) as span:
                span.set_data("messaging.system", "jobq")
                span.set_data("messaging.destination.name", job.queue)
                span.set_data("messaging.message.id", str(job.id))
                span.set_data("messaging.message.retry.count", job.failures)
                try:
                    with self._checking_in(job, carried):
                        yield
                except (Snooze, PauseQueue) as signal:
                    put_off = signal  # no error of the transaction
                except BaseException as error:
                    with suppress(Exception):
                        setattr(error, TRACE, _place_of(span))
                    raise
        if put_off is not None:
            raise put_off

    @contextmanager
    def _checking_in(self, job: CurrentJob, carried: Mapping[str, str]) -> Iterator[None]:
        """For the job of a schedule. An attempt that was put off or cut off is gone on with by the next one."""
        if (name := carried.get("schedule")) is None:
            yield
            return
        periodic = self._app.schedules.get(name)
        check_in = partial(
            capture_checkin,
            slug_of(name),
            _check_in_id(job, name),
            monitor_config=None if periodic is None else monitor_of(periodic.schedule),
        )
        check_in(status=MonitorStatus.IN_PROGRESS)
        began = monotonic()
        try:
            yield
        except (Snooze, PauseQueue):
            raise
        except Exception:
            check_in(status=MonitorStatus.ERROR, duration=monotonic() - began)
            raise
        check_in(status=MonitorStatus.OK, duration=monotonic() - began)


@contextmanager
def _watch(outgoing: Outgoing) -> Iterator[None]:
    """An enqueue: a span of the current transaction, and its trace for the jobs."""
    with sentry_sdk.start_span(op="queue.publish", name=outgoing.kind, origin=ORIGIN) as span:
        span.set_data("messaging.system", "jobq")
        if outgoing.queue is not None:
            span.set_data("messaging.destination.name", outgoing.queue)
        _carry(outgoing.carried)
        yield
        if outgoing.number == 1 and outgoing.created:
            span.set_data("messaging.message.id", str(outgoing.created[0]))


def _carry(carried: dict[str, str]) -> None:
    """Beside the baggage of others, which has the same name."""
    if traceparent := sentry_sdk.get_traceparent():
        carried["sentry-trace"] = traceparent
    if found := sentry_sdk.get_baggage():
        carried["baggage"] = ",".join(filter(None, [carried.get("baggage"), found]))


def _place_of(span: Span) -> dict[str, Any]:
    return {name: getattr(span, name) for name in ("trace_id", "span_id", "parent_span_id", "op")}


def slug_of(name: str) -> str:
    """A schedule's name as the slug of a monitor."""
    return re.sub("[^a-z0-9_-]+", "-", name.lower())[:LONGEST_SLUG]


def monitor_of(schedule: Schedule) -> MonitorConfig | None:
    """A schedule as Sentry can keep it, so that it notices what is missing; None where it cannot."""
    if schedule.form == "cron" and PLAIN_CRONTAB.fullmatch(schedule.expression):
        return {"schedule": {"type": "crontab", "value": schedule.expression}, "timezone": schedule.zone.key}
    if schedule.form == "every":
        minutes, rest = divmod(timedelta(seconds=float(schedule.expression)), timedelta(minutes=1))
        if minutes and not rest:
            return {"schedule": {"type": "interval", "value": minutes, "unit": "minute"}, "timezone": "UTC"}
    return None


def _check_in_id(job: CurrentJob, name: str) -> str:
    """The same for attempts of which none has failed."""
    return uuid5(NAMESPACE_OID, f"{name} {job.id} {job.created_at.isoformat()} {job.failures}").hex


def _tags(job: CurrentJob) -> dict[str, Any]:
    return {"jobq.queue": job.queue, "jobq.kind": job.kind, "jobq.attempt": job.attempt}


def _about(job: CurrentJob) -> dict[str, Any]:
    return {"id": job.id, "attempt": job.attempt, "failures": job.failures, "max_attempts": job.max_attempts}


def _without_secrets(event: Event, hint: Hint) -> Event:
    without: Event = mask_all(event)
    return without


def _without_variables(event: Event, hint: Hint) -> Event:
    found: dict[str, Any] = dict(event)
    for error in (found.get("exception") or {}).get("values") or []:
        for frame in (error.get("stacktrace") or {}).get("frames") or []:
            frame.pop("vars", None)
    return event
