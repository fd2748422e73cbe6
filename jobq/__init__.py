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
    from jobq.backoff import ByError, Exponential
    from jobq.context import Context, Transaction, current
    from jobq.errors import (
        ArgsError,
        AutocommitError,
        BindError,
        ContextError,
        EmbeddedError,
        JobqError,
        LeaseLostError,
        NotEndedError,
        NotPendingError,
        OptionError,
        OptionTypeError,
        RegistrationError,
        SchemaError,
        UniqueKeyError,
        UnknownJobError,
        UnknownKindError,
        WorkerError,
    )
    from jobq.events import ErrorEvent
    from jobq.handlers import Args, Handler, Kind, kind
    from jobq.keys import pk
    from jobq.model import Enqueued, Failure, Job, State
    from jobq.outcomes import Fail, Ok, Outcome, Permanent, Skip, Snooze
    from jobq.producer import enqueue, enqueue_async, enqueue_many, enqueue_many_async
    from jobq.refusals import Refusal, Repaired
    from jobq.registry import App, Registry
    from jobq.report import KindStats, QueueStats, Stats, WorkerRow
    from jobq.schema import migrate
    from jobq.selection import enqueue_select, enqueue_select_async
    from jobq.tables import metadata
    from jobq.worker import Worker, WorkerStats

# Where each public name lives. Imported when first asked for, so that a web application that only enqueues loads
# neither the worker nor alembic, and `import jobq` works without greenlet.
_HOMES = {
    "jobq.admin": (
        "cancel cancel_async get get_async jobs jobs_async retry retry_async stats stats_async workers workers_async"
    ),
    "jobq.backoff": "ByError Exponential",
    "jobq.context": "Context Transaction current",
    "jobq.errors": (
        "ArgsError AutocommitError BindError ContextError EmbeddedError JobqError LeaseLostError NotEndedError"
        " NotPendingError OptionError OptionTypeError RegistrationError SchemaError UniqueKeyError UnknownJobError"
        " UnknownKindError WorkerError"
    ),
    "jobq.events": "ErrorEvent",
    "jobq.handlers": "Args Handler Kind kind",
    "jobq.keys": "pk",
    "jobq.model": "Enqueued Failure Job State",
    "jobq.outcomes": "Fail Ok Outcome Permanent Skip Snooze",
    "jobq.producer": "enqueue enqueue_async enqueue_many enqueue_many_async",
    "jobq.refusals": "Refusal Repaired",
    "jobq.registry": "App Registry",
    "jobq.report": "KindStats QueueStats Stats WorkerRow",
    "jobq.schema": "migrate",
    "jobq.selection": "enqueue_select enqueue_select_async",
    "jobq.tables": "metadata",
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
    "Context",
    "ContextError",
    "EmbeddedError",
    "Enqueued",
    "ErrorEvent",
    "Exponential",
    "Fail",
    "Failure",
    "Handler",
    "Job",
    "JobqError",
    "Kind",
    "KindStats",
    "LeaseLostError",
    "NotEndedError",
    "NotPendingError",
    "Ok",
    "OptionError",
    "OptionTypeError",
    "Outcome",
    "Permanent",
    "QueueStats",
    "Refusal",
    "RegistrationError",
    "Registry",
    "Repaired",
    "SchemaError",
    "Skip",
    "Snooze",
    "State",
    "Stats",
    "Transaction",
    "UniqueKeyError",
    "UnknownJobError",
    "UnknownKindError",
    "Worker",
    "WorkerError",
    "WorkerRow",
    "WorkerStats",
    "cancel",
    "cancel_async",
    "current",
    "enqueue",
    "enqueue_async",
    "enqueue_many",
    "enqueue_many_async",
    "enqueue_select",
    "enqueue_select_async",
    "get",
    "get_async",
    "jobs",
    "jobs_async",
    "kind",
    "metadata",
    "migrate",
    "pk",
    "retry",
    "retry_async",
    "stats",
    "stats_async",
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
