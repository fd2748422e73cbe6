"""`jobq run`."""

from __future__ import annotations

import logging
import math
import re
from contextlib import redirect_stderr
from datetime import timedelta
from io import StringIO
from typing import Annotated, TypeAlias

import anyio
import typer

from jobq import App, Worker, urls
from jobq_cli.connect import Target, target
from jobq_cli.load import hint, load_app
from jobq_cli.logs import Level, LogForm, set_up
from jobq_cli.options import NAME_RULE, DatabaseUrl
from jobq_cli.pages import Address, ports_of
from jobq_cli.serve import serve

logger = logging.getLogger("jobq.run")
DAY = 86_400.0
LOCAL = "127.0.0.1"


def _a_place(value: str) -> str:
    if (problem := hint(value)) is not None:
        raise typer.BadParameter(problem)
    return value


def _some_queues(values: list[str] | None) -> list[str]:
    names = [name.strip() for value in values or [] for name in value.split(",")]
    for name in names:
        if not NAME_RULE.fullmatch(name):
            raise typer.BadParameter(f"{name!r}: 1 to 63 of letters, digits and _ . - : / are allowed")
    return list(dict.fromkeys(names))


def _finite(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("seconds must be a number")
    return value


def _a_worker_name(value: str | None) -> str | None:
    if value is not None and not (value.isprintable() and re.fullmatch(".{1,63}", value)):
        raise typer.BadParameter("1 to 63 printable characters")
    return value


Place: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODULE:APP", callback=_a_place, help="Where the jobq.App is, such as shop.jobs:app.")
]
Queues: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--queues", "--queue", metavar="A,B", callback=_some_queues, help="Serve only these queues."),
]
Concurrency: TypeAlias = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="Run so many jobs at a time.")
]
Processes: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=1_000, help='Children for handlers with executor="process" [as many as cores].'
    ),
]
MaxJobsPerChild: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=1, max=10**9, help="Replace a child after so many jobs.")
]
MaxMemoryPerChild: TypeAlias = Annotated[
    int | None, typer.Option(metavar="MIB", min=16, max=1 << 30, help="End a job whose child uses more memory.")
]
Lease: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.1, max=DAY, callback=_finite,
        help="If this process dies, others get its jobs after this time.",
    ),
]  # fmt: skip
Grace: TypeAlias = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0, max=DAY, callback=_finite, help="What running jobs have to end at a stop."),
]
PollInterval: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.01, max=DAY, callback=_finite,
        help="Look for due jobs so often; new ones are told of at once.",
    ),
]  # fmt: skip
Stall: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", min=0.1, max=DAY, callback=_finite,
        help="End with 70 when the event loop is blocked for so long [the lease, at least 300].",
    ),
]  # fmt: skip
Name: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", callback=_a_worker_name, help="What people call this worker [host:pid]."),
]
Pooler: TypeAlias = Annotated[
    bool, typer.Option("--pooler", help="The database URL is that of a pooler in transaction mode, such as PgBouncer.")
]
ListenUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="URL", envvar="JOBQ_LISTEN_URL",
        help="Hear of new jobs here: the server's own URL, where a pooler is in between.",
    ),
]  # fmt: skip
HealthPort: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="PORT", min=0, max=65_535, help="Answer /healthz and /readyz here, over HTTP; 0: a free one."),
]
HealthHost: TypeAlias = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where --health-port listens; 0.0.0.0: everywhere.")
]
MetricsPort: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="PORT", min=0, max=65_535, help="Answer /metrics here, with the extra prometheus."),
]
MetricsHost: TypeAlias = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Where --metrics-port listens; 0.0.0.0: everywhere.")
]
Log: TypeAlias = Annotated[LogForm, typer.Option("--log", metavar="text|json", help="The form of the log, on stderr.")]
LogLevel: TypeAlias = Annotated[
    Level, typer.Option("--log-level", metavar="debug|info|warning|error", help="Log from this level on.")
]


def run(
    place: Place,
    queues: Queues = None,
    concurrency: Concurrency = 20,
    processes: Processes = None,
    max_jobs_per_child: MaxJobsPerChild = None,
    max_memory_per_child: MaxMemoryPerChild = None,
    lease: Lease = 60,
    grace: Grace = 30,
    poll_interval: PollInterval = 1,
    stall: Stall = None,
    name: Name = None,
    pooler: Pooler = False,
    listen_url: ListenUrl = None,
    health_port: HealthPort = None,
    health_host: HealthHost = LOCAL,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOCAL,
    log: Log = LogForm.TEXT,
    log_level: LogLevel = Level.INFO,
    database_url: DatabaseUrl = None,
) -> None:
    """Run a worker: it claims due jobs of the kinds that the app has handlers for, until it is stopped.

    Several may run anywhere. SIGTERM or Ctrl-C: no more claims, running jobs have the grace time to end, the rest is
    given back. A second one: given back at once.

    Exit codes: 0 all recorded or given back, 1 could not start or could not give back, 70 a handler had to be left
    behind or the event loop was blocked, 130 or 143 after a second signal, or one while
    the app was imported.

    \b
    Examples:
      jobq run shop.jobs:app
      jobq run shop.jobs:app --queues email,images --concurrency 50 --log json
      jobq run shop.jobs:app --health-port 8081 --metrics-port 9090
    """
    set_up(log, log_level)
    app = load_app(place)
    chosen = _target(database_url, log)
    worker = Worker(
        app,
        chosen.url,
        queues=queues or None,
        concurrency=concurrency,
        lease=timedelta(seconds=lease),
        grace=timedelta(seconds=grace),
        poll_interval=timedelta(seconds=poll_interval),
        stall=None if stall is None else timedelta(seconds=stall),
        name=name,
        pooler=pooler,
        listen_url=listen_url or None,
        processes=processes,
        max_jobs_per_child=max_jobs_per_child,
        max_memory_per_child=max_memory_per_child,
        app_path=place,
    )
    ports = ports_of(worker, chosen, Address(health_host, health_port), Address(metrics_host, metrics_port))
    declared = _declared(app)
    _say_start(worker, app, queues, concurrency, chosen)
    raise typer.Exit(anyio.run(serve, worker, chosen, set(queues or []) - declared, ports))


def _target(database_url: str | None, log: LogForm) -> Target:
    """The database; where lines are JSON, what is said about the choice becomes one of them."""
    if log is LogForm.TEXT:
        return target(database_url)
    with redirect_stderr(StringIO()) as said:
        chosen = target(database_url)
    for line in said.getvalue().splitlines():
        logger.info("%s", line)
    return chosen


def _declared(app: App) -> set[str]:
    return {handler.settings.queue for handler in app.handlers.values()} | set(app.queues)


def _say_start(worker: Worker, app: App, queues: list[str] | None, concurrency: int, chosen: Target) -> None:
    served = f"queues {', '.join(queues)}" if queues else f"all queues ({', '.join(sorted(_declared(app)))}, ...)"
    kinds = ", ".join(sorted(app.handlers))
    where = urls.safe(chosen.url)
    logger.info("worker %s: %s; kinds %s; %d at a time; %s", worker.name, served, kinds, concurrency, where)
