"""What a worker can be told, validated together.

This is the one table of it: the options of `jobq run`, the variables JOBQ_... and the keys of [tool.jobq] in a
pyproject.toml are made from it. One option more is a line here, and a keyword of Worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, get_type_hints

import sqlalchemy as sa

from jobq.worker.rules import DatabaseUrl, Fault, Flag, Names, Rule, Span, Text, Whole, refuse

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of an option besides its name and default.

    about: for the help, a sentence. unset: what holds where the default is None. metavar: what the help writes for the
    value. in_project: False for what a file that is committed should not hold.
    """

    rule: Rule
    about: str
    unset: str = ""
    metavar: str = ""
    in_project: bool = True


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a Worker. Raises: OptionError or OptionTypeError, one for all that is wrong with them."""

    queues: Annotated[
        Sequence[str] | None,
        Spec(Names(), "Serve only these queues.", unset="all with work of a kind that the app knows", metavar="A,B"),
    ] = None
    concurrency: Annotated[int, Spec(Whole(1, 10_000), "Run so many jobs at a time.")] = 20
    lease: Annotated[timedelta, Spec(Span(), "If this process dies, others get its jobs after this time.")] = (
        60 * SECOND
    )
    grace: Annotated[timedelta, Spec(Span(0 * SECOND), "What running jobs have to end at a stop.")] = 30 * SECOND
    poll_interval: Annotated[timedelta, Spec(Span(), "Look for due jobs so often; new ones are told of at once.")] = (
        SECOND
    )
    stall: Annotated[
        timedelta | None,
        Spec(Span(), "End with 70 when the event loop is blocked for so long.", unset="the lease, at least 5m"),
    ] = None
    name: Annotated[str | None, Spec(Text(), "What people call this worker.", unset="host:pid", metavar="NAME")] = None
    listen: Annotated[bool, Spec(Flag(), "Hear of new jobs at once, by notification.")] = True
    pooler: Annotated[
        bool, Spec(Flag(), "The database URL is that of a pooler in transaction mode, such as PgBouncer.")
    ] = False
    listen_url: Annotated[
        sa.URL | str | None,
        Spec(
            DatabaseUrl(),
            "Hear of new jobs here: the server's own URL, where a pooler is in between.",
            unset="the database URL",
            metavar="URL",
            in_project=False,
        ),
    ] = None
    processes: Annotated[
        int | None,
        Spec(
            Whole(1, 1_000),
            'Children for executor="process"; for "dask", those of a cluster on this machine.',
            unset="as many as cores",
        ),
    ] = None
    max_jobs_per_child: Annotated[
        int | None, Spec(Whole(1, 10**9), "Replace a child after so many jobs.", unset="never")
    ] = None
    max_memory_per_child: Annotated[
        int | None,
        Spec(
            Whole(16, 1 << 30, unit="MiB"),
            "End a job whose child uses more memory, in MiB.",
            unset="no limit",
            metavar="MIB",
        ),
    ] = None
    threads: Annotated[
        int | None,
        Spec(Whole(1, 10_000), "Run so many handlers in threads at a time.", unset="as many as concurrency"),
    ] = None
    max_left_behind: Annotated[
        int | None,
        Spec(
            Whole(0, 10**6),
            "End with 70 when more handlers could not be stopped and still run.",
            unset="as many as concurrency",
        ),
    ] = None
    dask_scheduler: Annotated[
        str | None,
        Spec(
            Text(),
            'Run handlers with executor="dask" on this cluster, tcp://host:8786.',
            unset="a cluster on this machine",
            metavar="ADDRESS",
        ),
    ] = None

    def __post_init__(self) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        found = [_fault(name, getattr(self, name), defaults[name], spec) for name, spec in specs(WorkerOptions).items()]
        refuse(fault for fault in found if fault is not None)

    @property
    def listens(self) -> bool:
        """Whether to wait for notifications: a pooler in transaction mode passes none on."""
        return self.listen and (not self.pooler or self.listen_url is not None)

    @property
    def stall_after(self) -> timedelta:
        """How long the event loop may stand still before the worker ends itself."""
        return self.stall if self.stall is not None else max(self.lease, timedelta(minutes=5))

    @property
    def most_left_behind(self) -> int:
        """With one more the worker ends: it never runs more than twice as many handlers as it was told to."""
        return self.concurrency if self.max_left_behind is None else self.max_left_behind

    @property
    def rescue_interval(self) -> timedelta:
        return max(timedelta(seconds=0.5), min(timedelta(seconds=10), self.lease / 6))


@cache
def specs(options: type[Any]) -> Mapping[str, Spec]:
    """What is known of each field of a dataclass such as WorkerOptions, by its name."""
    hints: dict[str, Any] = get_type_hints(options, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(options)}


def _fault(name: str, value: object, default: object, spec: Spec) -> Fault | None:
    """None is allowed where it is the default."""
    if value is None and default is None:
        return None
    return spec.rule.fault(name, value)
