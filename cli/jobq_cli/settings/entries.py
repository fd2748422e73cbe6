"""The options of `jobq run`, each with its three names: poll-interval, JOBQ_POLL_INTERVAL, --poll-interval."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any

from jobq.worker.options import Spec, WorkerOptions, specs
from jobq.worker.rules import DatabaseUrl, Flag, Text, Whole
from jobq_cli.logs import Level, LogForm
from jobq_cli.settings.rules import Choice, Place

LOCAL = "127.0.0.1"
PORT = Whole(0, 65_535)


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """What the process of a worker is told, beside WorkerOptions."""

    app: Annotated[str | None, Spec(Place(), "Where the jobq.App is, such as shop.jobs:app.", metavar="MODULE:APP")] = (
        None
    )
    database_url: Annotated[
        str | None,
        Spec(
            DatabaseUrl(),
            "The database; any form of a PostgreSQL URL.",
            unset="this project's own PostgreSQL",
            metavar="URL",
            in_project=False,
        ),
    ] = None
    health_port: Annotated[
        int | None,
        Spec(PORT, "Answer /healthz and /readyz here, over HTTP; 0: a free one.", unset="nowhere", metavar="PORT"),
    ] = None
    health_host: Annotated[
        str, Spec(Text(), "Where --health-port listens; 0.0.0.0: everywhere.", metavar="ADDRESS")
    ] = LOCAL
    metrics_port: Annotated[
        int | None,
        Spec(PORT, "Answer /metrics here, with the extra prometheus.", unset="nowhere", metavar="PORT"),
    ] = None
    metrics_host: Annotated[
        str, Spec(Text(), "Where --metrics-port listens; 0.0.0.0: everywhere.", metavar="ADDRESS")
    ] = LOCAL
    uvloop: Annotated[bool, Spec(Flag(), "Run on uvloop's event loop, with the extra uvloop.")] = False
    log: Annotated[LogForm, Spec(Choice(LogForm), "The form of the log, on stderr.")] = LogForm.TEXT
    log_level: Annotated[Level, Spec(Choice(Level), "Log from this level on.")] = Level.INFO


@dataclass(frozen=True, slots=True)
class Entry:
    """An option: `name` as in Python."""

    name: str
    default: Any
    spec: Spec

    @property
    def key(self) -> str:
        """In [tool.jobq] of a pyproject.toml."""
        return self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return f"JOBQ_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """On the command line, where only the app has none."""
        return "APP" if self.name == "app" else f"--{self.key}"


@cache
def entries() -> dict[str, Entry]:
    """All of them by their names, in the order of the help."""
    told = {**specs(WorkerOptions), **specs(ProcessOptions)}
    every = (*fields(WorkerOptions), *fields(ProcessOptions))
    return {each.name: Entry(each.name, each.default, told[each.name]) for each in every}
