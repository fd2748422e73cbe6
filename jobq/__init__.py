"""A background job queue for applications that already run on PostgreSQL and SQLAlchemy.

A job is a row, written in the same transaction as the work that caused it. See README.md and DESIGN.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobq import tables as tables
    from jobq.admin import (
        cancel,
        cancel_async,
        get,
        get_async,
        jobs,
        jobs_async,
        retry,
        retry_async,
        stats,
        stats_async,
        workers,
        workers_async,
    )
    from jobq.answers.causes import Cause, Reason, Why
    from jobq.backoff import ByError, Exponential
    from jobq.cleaner import clean, clean_async
    from jobq.codec.secret import Secret
    from jobq.context import Context, Transaction, current
    from jobq.diagnosis import Check, Health
    from jobq.errors import (
        ArgsError,
        AutocommitError,
        BindError,
        ChildDiedError,
        ContextError,
        EmbeddedError,
        JobqError,
        LeaseLostError,
        MemoryLimitError,
        NotEndedError,
        NotPendingError,
        OptionError,
        OptionTypeError,
        RegistrationError,
        SchemaError,
        StoppedError,
        UniqueKeyError,
        UnknownJobError,
        UnknownKindError,
        UnknownScheduleError,
        WaitTimeoutError,
        WorkerError,
    )
    from jobq.events import ErrorEvent, JobEnd, JobEnds
    from jobq.explain import why, why_async
    from jobq.handlers import Args, Handler, Kind, kind
    from jobq.inspection import health, health_async
    from jobq.keys import pk
    from jobq.lookup import recent, recent_async
    from jobq.model import Enqueued, Failure, Job, Progress, State
    from jobq.outcomes import Fail, Ok, Outcome, PauseQueue, Permanent, Skip, Snooze
    from jobq.pausing import http_status
    from jobq.producer import enqueue, enqueue_async, enqueue_many, enqueue_many_async
    from jobq.queueing import (
        QueueRow,
        pause,
        pause_async,
        queues,
        queues_async,
        resume,
        resume_async,
        set_queue,
        set_queue_async,
    )
    from jobq.refusals import Refusal, Repaired
    from jobq.registry import App, Registry
    from jobq.report import KindStats, OutcomeStats, QueueStats, Stats, WorkerRow
    from jobq.schedule import Schedule, cron, every, when
    from jobq.scheduling import ScheduleRow, run_schedule, run_schedule_async, schedules, schedules_async
    from jobq.schema import migrate
    from jobq.selection import enqueue_select, enqueue_select_async
    from jobq.tables import metadata
    from jobq.throttle import per_minute
    from jobq.waiting import wait_for, wait_for_async
    from jobq.worker import Worker, WorkerStats

# Where each public name lives. Imported when first asked for, so that a web application that only enqueues loads
# neither the worker nor alembic, and `import jobq` works without greenlet.
_HOMES = {
    "jobq.admin": (
        "cancel cancel_async get get_async jobs jobs_async retry retry_async stats stats_async workers workers_async"
    ),
    "jobq.answers.causes": "Cause Reason Why",
    "jobq.backoff": "ByError Exponential",
    "jobq.cleaner": "clean clean_async",
    "jobq.codec.secret": "Secret",
    "jobq.context": "Context Transaction current",
    "jobq.diagnosis": "Check Health",
    "jobq.errors": (
        "ArgsError AutocommitError BindError ChildDiedError ContextError EmbeddedError JobqError LeaseLostError"
        " MemoryLimitError NotEndedError NotPendingError OptionError OptionTypeError RegistrationError SchemaError"
        " StoppedError UniqueKeyError UnknownJobError UnknownKindError UnknownScheduleError WaitTimeoutError"
        " WorkerError"
    ),
    "jobq.events": "ErrorEvent JobEnd JobEnds",
    "jobq.explain": "why why_async",
    "jobq.handlers": "Args Handler Kind kind",
    "jobq.inspection": "health health_async",
    "jobq.keys": "pk",
    "jobq.lookup": "recent recent_async",
    "jobq.model": "Enqueued Failure Job Progress State",
    "jobq.outcomes": "Fail Ok Outcome PauseQueue Permanent Skip Snooze",
    "jobq.pausing": "http_status",
    "jobq.producer": "enqueue enqueue_async enqueue_many enqueue_many_async",
    "jobq.queueing": "QueueRow pause pause_async queues queues_async resume resume_async set_queue set_queue_async",
    "jobq.refusals": "Refusal Repaired",
    "jobq.registry": "App Registry",
    "jobq.report": "KindStats OutcomeStats QueueStats Stats WorkerRow",
    "jobq.schedule": "Schedule cron every when",
    "jobq.scheduling": "ScheduleRow run_schedule run_schedule_async schedules schedules_async",
    "jobq.schema": "migrate",
    "jobq.selection": "enqueue_select enqueue_select_async",
    "jobq.tables": "metadata",
    "jobq.throttle": "per_minute",
    "jobq.waiting": "wait_for wait_for_async",
    "jobq.worker": "Worker WorkerStats",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "App",
    "Args",
    "ArgsError",
    "AutocommitError",
    "BindError",
    "ByError",
    "Cause",
    "Check",
    "ChildDiedError",
    "Context",
    "ContextError",
    "EmbeddedError",
    "Enqueued",
    "ErrorEvent",
    "Exponential",
    "Fail",
    "Failure",
    "Handler",
    "Health",
    "Job",
    "JobEnd",
    "JobEnds",
    "JobqError",
    "Kind",
    "KindStats",
    "LeaseLostError",
    "MemoryLimitError",
    "NotEndedError",
    "NotPendingError",
    "Ok",
    "OptionError",
    "OptionTypeError",
    "Outcome",
    "OutcomeStats",
    "PauseQueue",
    "Permanent",
    "Progress",
    "QueueRow",
    "QueueStats",
    "Reason",
    "Refusal",
    "RegistrationError",
    "Registry",
    "Repaired",
    "Schedule",
    "ScheduleRow",
    "SchemaError",
    "Secret",
    "Skip",
    "Snooze",
    "State",
    "Stats",
    "StoppedError",
    "Transaction",
    "UniqueKeyError",
    "UnknownJobError",
    "UnknownKindError",
    "UnknownScheduleError",
    "WaitTimeoutError",
    "Why",
    "Worker",
    "WorkerError",
    "WorkerRow",
    "WorkerStats",
    "cancel",
    "cancel_async",
    "clean",
    "clean_async",
    "cron",
    "current",
    "enqueue",
    "enqueue_async",
    "enqueue_many",
    "enqueue_many_async",
    "enqueue_select",
    "enqueue_select_async",
    "every",
    "get",
    "get_async",
    "health",
    "health_async",
    "http_status",
    "jobs",
    "jobs_async",
    "kind",
    "metadata",
    "migrate",
    "pause",
    "pause_async",
    "per_minute",
    "pk",
    "queues",
    "queues_async",
    "recent",
    "recent_async",
    "resume",
    "resume_async",
    "retry",
    "retry_async",
    "run_schedule",
    "run_schedule_async",
    "schedules",
    "schedules_async",
    "set_queue",
    "set_queue_async",
    "stats",
    "stats_async",
    "wait_for",
    "wait_for_async",
    "when",
    "why",
    "why_async",
    "workers",
    "workers_async",
]


if not TYPE_CHECKING:  # a type checker that saw it would take any name for a public one

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            value = globals()[name] = getattr(import_module(_HOME[name]), name)
            return value
        if name == "tables":
            return import_module("jobq.tables")
        raise AttributeError(f"module 'jobq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "tables"})
