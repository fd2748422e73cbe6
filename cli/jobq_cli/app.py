"""The commands of `jobq`, and what becomes of whatever one of them raises.

Exit codes: 0 done, 1 failure, 2 wrong usage, 130 and 143 interrupted by Ctrl-C and SIGTERM, 141 the reader of a pipe
went away (as for any tool).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import typer
from typer.main import get_command

from jobq_cli.lazy import PLAIN, Entry, LazyGroup
from jobq_cli.options import GlobalDatabaseUrl
from jobq_cli.signals import exit_code, stop_behind
from jobq_cli.title import kept_from_title

UsageError: Any = typer.BadParameter.__base__  # of click, or of the copy of it that newer versions of typer carry
BROKEN_PIPE = 141


class Root(LazyGroup):
    """A command is one line here, and one module."""

    entries: ClassVar = {
        "run": Entry("jobq_cli.commands.run:run", "Run a worker."),
        "demo": Entry("jobq_cli.commands.demo:demo", "Watch a small shop's jobs run, fail, die and be rescued."),
        "bench": Entry("jobq_cli.commands.bench:bench", "Measure how fast jobq is on this machine."),
        "stats": Entry("jobq_cli.commands.stats:stats", "Count what waits, runs and has ended, by queue and by kind."),
        "top": Entry("jobq_cli.commands.top:top", "Watch queues, workers and running jobs, with progress bars."),
        "list": Entry("jobq_cli.commands.list:list_jobs", "List jobs, the newest first."),
        "show": Entry("jobq_cli.commands.show:show", "Show one job: its args, its timeline, every failed attempt."),
        "why": Entry("jobq_cli.commands.why:why", "Say why a job has not run, or not finished."),
        "retry": Entry("jobq_cli.commands.retry:retry", "Run ended jobs again, by id or in bulk."),
        "cancel": Entry("jobq_cli.commands.cancel:cancel", "Cancel waiting jobs, by id or in bulk."),
        "pause": Entry("jobq_cli.commands.pause:pause", "Let a queue stand still, for a while or until it is resumed."),
        "resume": Entry("jobq_cli.commands.pause:resume", "End a queue's pause."),
        "queue": Entry("jobq_cli.commands.queue:app", "What the queues are set to: weights and limits."),
        "health": Entry("jobq_cli.commands.health:health", "Check that jobs are run; exit 1 when something is wrong."),
        "check": Entry("jobq_cli.commands.check:check", "Check that all that is enqueued has a handler that it fits."),
        "workers": Entry("jobq_cli.commands.workers:workers", "List the workers and what they run."),
        "schedules": Entry("jobq_cli.commands.schedules:app", "List the schedules, and run one now."),
        "clean": Entry("jobq_cli.commands.clean:clean", "Delete ended jobs that have been kept for their time."),
        "migrate": Entry("jobq_cli.commands.migrate:migrate", "Create the tables, or bring them up to date."),
        "grants": Entry("jobq_cli.commands.grants:grants", "Print the rights that database roles need, as SQL."),
        "migration": Entry("jobq_cli.commands.migration:app", "The tables in your own Alembic history."),
        "db": Entry("jobq_cli.commands.db:app", "The database in use, and the embedded PostgreSQL."),
        "version": Entry("jobq_cli.commands.version:version", "Show the versions of jobq and what it runs on."),
    }


app = typer.Typer(cls=Root, **PLAIN)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    database_url: GlobalDatabaseUrl = None,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """A background job queue on PostgreSQL.

    The database is that of --database-url, else of JOBQ_DATABASE_URL, else of DATABASE_URL, else a PostgreSQL of its
    own for this project's folder, where jobq[embedded] is installed.

    \b
    Examples:
      jobq migrate
      jobq stats
      jobq list --state dead
      jobq retry 42
    """
    if version:
        from jobq_cli.commands.version import version as show_version

        show_version()
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. Whatever the user can cause ends in one line on stderr."""
    typed = kept_from_title(arguments)
    _prepare_streams()
    try:
        code = _invoke(typed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except (KeyboardInterrupt, typer.Abort) as stop:
        return exit_code(stop)
    except Exception as error:
        from jobq_cli.failures import report, trace

        trace(error)
        if (behind := stop_behind(error)) is not None:
            return exit_code(behind)
        code = report(error)
        _drop_output()
        return code


def _invoke(arguments: list[str]) -> int:
    command = get_command(app)
    try:
        with command.make_context("jobq", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except UsageError as error:
        from jobq_cli.failures import report_usage

        return report_usage(error)
    return 0


def _prepare_streams() -> None:
    """A job's text may hold what the terminal's encoding does not; a stream that was closed is None."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Let go of what could not be written, or the interpreter tries once more on its way out, and complains."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
