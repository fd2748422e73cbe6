"""`jobq run`."""

from __future__ import annotations

import logging
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from typing import Annotated, Any, TypeAlias

import typer

from jobq import App, Worker, urls
from jobq.worker.options import WorkerOptions, specs
from jobq_cli.connect import Target, target
from jobq_cli.failures import Failed, say
from jobq_cli.load import load_app
from jobq_cli.logs import LogForm, set_up
from jobq_cli.options import AsJson, DatabaseUrl
from jobq_cli.pages import Address, ports_of
from jobq_cli.serve import run_process
from jobq_cli.settings.command_line import as_text, takes_settings
from jobq_cli.settings.gather import end_with_faults, gather, need_app
from jobq_cli.settings.merge import Settings
from jobq_cli.settings.show import show

logger = logging.getLogger("jobq.run")
Place: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="MODULE:APP", help="Where the jobq.App is, such as shop.jobs:app.")
]
ShowOptions: TypeAlias = Annotated[
    bool, typer.Option("--show-options", help="Print each option and where it comes from, and end.")
]
Isolated: TypeAlias = Annotated[
    bool, typer.Option("--isolated", help="Read neither pyproject.toml nor JOBQ_..., but for the database.")
]


@takes_settings
def run(
    app: Place = None,
    show_options: ShowOptions = False,
    isolated: Isolated = False,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Run a worker: it claims due jobs of the kinds that the app has handlers for, until it is stopped.

    Several may run anywhere. SIGTERM or Ctrl-C: no more claims, running jobs have the grace time to end, the rest is
    given back. A second one: given back at once.

    Each option is also read from [tool.jobq] in the nearest pyproject.toml (poll-interval = "5s") and from the
    environment (JOBQ_POLL_INTERVAL=5s). The environment wins over the file, the command line over both.

    Exit codes: 0 all recorded or given back, 1 could not start or could not give back, 70 a handler had to be left
    behind or the event loop was blocked, 130 or 143 after a second signal, or one while
    the app was imported.

    \b
    Examples:
      jobq run shop.jobs:app
      jobq run shop.jobs:app --queues email,images --concurrency 50 --log json
      jobq run shop.jobs:app --health-port 8081 --metrics-port 9090
      jobq run --show-options
    """
    if as_json and not show_options:
        raise typer.BadParameter("--json is for --show-options; for the log write --log json")
    settings = gather({"app": app, "database_url": database_url, **as_text(given)}, isolated=isolated)
    if not show_options:
        need_app(settings, "jobq run", isolated=isolated)
    end_with_faults(settings)
    if show_options:
        show(settings, as_json=as_json)
        for doubt in settings.doubts:
            say(f"warning: {doubt}")
    else:
        raise typer.Exit(_run(settings, database_url))


def _run(settings: Settings, database_url: str | None) -> int:
    if settings["uvloop"] and find_spec("uvloop") is None:
        raise Failed("--uvloop needs the package uvloop: pip install 'jobq[uvloop]' (there is none for Windows)")
    set_up(settings["log"], settings["log_level"])
    for doubt in settings.doubts:
        logger.warning("%s", doubt)
    app = load_app(settings["app"], settings.app_folder)
    chosen = _target(database_url, settings["log"])
    options = settings.values(specs(WorkerOptions))
    worker = Worker(app, chosen.url, **options, app_path=settings["app"])
    health, metrics = (Address(settings[f"{page}_host"], settings[f"{page}_port"]) for page in ("health", "metrics"))
    ports = ports_of(worker, chosen, health, metrics)
    _say_start(worker, app, settings, chosen)
    doubtful = set(settings["queues"] or []) - _declared(app)
    return run_process(worker, chosen, doubtful, ports, uvloop=settings["uvloop"])


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


def _say_start(worker: Worker, app: App, settings: Settings, chosen: Target) -> None:
    queues, concurrency = settings["queues"], settings["concurrency"]
    served = f"queues {', '.join(queues)}" if queues else f"all queues ({', '.join(sorted(_declared(app)))}, ...)"
    kinds = ", ".join(sorted(app.handlers))
    where = urls.safe(chosen.url)
    logger.info("worker %s: %s; kinds %s; %d at a time; %s", worker.name, served, kinds, concurrency, where)
