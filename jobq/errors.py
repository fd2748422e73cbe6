"""Every error that jobq raises.

JobqError
├── ArgsError (ValueError)            arguments do not fit the handler, or have no JSON form
├── OptionError (ValueError)          an option is outside its range
├── OptionTypeError (TypeError)       an option has the wrong type
├── RegistrationError (TypeError)     a handler that cannot work, or a kind registered twice
├── UnknownKindError (LookupError)    no handler is registered for a kind
├── UnknownJobError (LookupError)     no job has this id
├── UnknownScheduleError (LookupError)  no schedule has this name
├── BindError (TypeError)             not a session or connection that the call can use
├── AutocommitError                   a connection in AUTOCOMMIT has no transaction to join
├── UniqueKeyError                    a unique key is held by another job
├── NotEndedError                     a job that still waits or runs cannot be retried by hand
├── NotPendingError                   a job that runs or has ended cannot be cancelled
├── WaitTimeoutError (TimeoutError)   a job has not ended in the time that was waited for it
├── LeaseLostError                    the job was taken from this worker meanwhile
├── StoppedError                      the job was told to stop, and its handler looked
├── ContextError (RuntimeError)       used outside of a job, or in the wrong kind of handler
├── SchemaError                       jobq's tables are missing, old, or newer than this version
├── ChildDiedError                    a job's process ended before the job did
│   └── MemoryLimitError              it was ended, since it used more memory than it may
├── WorkerError                       the worker cannot start, or had to end
└── EmbeddedError                     the embedded PostgreSQL cannot run here
"""

from __future__ import annotations


class JobqError(Exception):
    """The base of every error that jobq raises."""


class ArgsError(JobqError, ValueError):
    """The arguments do not fit the handler or cannot be written as JSON; `path` names the place."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class OptionError(JobqError, ValueError):
    """An option (queue, priority, delay, unique_key ...) is outside of its range."""


class OptionTypeError(JobqError, TypeError):
    """An option (queue, priority, delay, unique_key ...) has the wrong type."""


class RegistrationError(JobqError, TypeError):
    """A handler cannot be registered: its signature cannot be a schema, or its kind is taken."""


class UnknownKindError(JobqError, LookupError):
    """No handler is registered for a job's kind."""

    def __init__(self, kind: str, known: frozenset[str]) -> None:
        super().__init__(
            f"no handler for kind {kind!r}; registered: {', '.join(sorted(known)) or 'none'}"
            " (does the worker import the module that registers it?)"
        )
        self.kind = kind
        self.known = known


class UnknownJobError(JobqError, LookupError):
    """No job has this id: it was never there, or it was deleted after the time for which it is kept."""

    def __init__(self, id: int) -> None:  # noqa: A002
        super().__init__(
            f"no job {id}: never there, not committed yet, or deleted after the time for which it was kept"
            " (see: jobq list)"
        )
        self.id = id


class UnknownScheduleError(JobqError, LookupError):
    """No worker has ever published a schedule of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no schedule {name[:200]!r}: workers publish those of their code when they start (see: jobq schedules)"
        )
        self.name = name


class BindError(JobqError, TypeError):
    """What was given is not a session or connection that this function can use."""


class AutocommitError(JobqError):
    """A connection in AUTOCOMMIT has no transaction that a job could join."""


class UniqueKeyError(JobqError):
    """The unique key is held by another open job; `holder` is its id, None when it cannot be told."""

    def __init__(self, message: str, *, key: str, holder: int | None) -> None:
        super().__init__(message)
        self.key = key
        self.holder = holder


class NotEndedError(JobqError):
    """The job waits or runs: only ended jobs are retried by hand."""

    def __init__(self, message: str, *, id: int, state: str) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id
        self.state = state


class NotPendingError(JobqError):
    """The job runs or has ended: only waiting jobs are cancelled, running ones when asked for."""

    def __init__(self, message: str, *, id: int, state: str) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id
        self.state = state


class WaitTimeoutError(JobqError, TimeoutError):
    """A job has not ended in the time that `wait_for` was given; `state` is where it stands, None: not known."""

    def __init__(self, message: str, *, id: int, state: str | None) -> None:  # noqa: A002
        super().__init__(message)
        self.id = id
        self.state = state


class LeaseLostError(JobqError):
    """The job was cancelled or given to another worker meanwhile; nothing of this attempt is kept."""


class StoppedError(JobqError):
    """The job should stop (its timeout, a cancel, a lost lease, a shutdown): `jobq.current().check()` raises it.

    To be let through. What becomes of the job is decided already, by what told it to stop.
    """


class ContextError(JobqError, RuntimeError):
    """Used outside of a running job, twice, or in a kind of handler that it does not fit."""


class SchemaError(JobqError):
    """The tables of jobq are missing, older than this version needs, or newer than it knows."""

    def __init__(self, message: str, *, found: str | None, needed: str) -> None:
        super().__init__(message)
        self.found = found
        self.needed = needed


class ChildDiedError(JobqError):
    """The process that a job ran in ended before the job did; one of `exit_code` and `signal` says how."""

    def __init__(self, message: str, *, exit_code: int | None = None, signal: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.signal = signal


class MemoryLimitError(ChildDiedError):
    """The process that a job ran in was ended: it used more memory than it may."""


class WorkerError(JobqError):
    """The worker cannot start, or had to end; the message says why and what to do."""


class EmbeddedError(JobqError, RuntimeError):
    """The embedded PostgreSQL cannot run here; the message says why and what to do instead."""
