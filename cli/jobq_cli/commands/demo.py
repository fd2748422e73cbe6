"""`jobq demo`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from jobq_cli.demo import ending, numbers
from jobq_cli.demo.course import Course
from jobq_cli.demo.database import database
from jobq_cli.demo.fleet import Fleet
from jobq_cli.demo.pace import USUAL_JOBS, Pace
from jobq_cli.demo.screen import LiveScreen, PlainScreen, Screen
from jobq_cli.failures import say
from jobq_cli.options import AsJson
from jobq_cli.output import print_json
from jobq_cli.text import as_dict


def _in_a_folder(value: Path | None) -> Path | None:
    if value is not None and not value.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {value.parent}")
    return value


Jobs: TypeAlias = Annotated[int, typer.Option(metavar="N", min=20, max=2_000, help="Enqueue so many jobs.")]
Seed: TypeAlias = Annotated[
    int, typer.Option(metavar="S", help="The same number gives the same orders, durations and failures.")
]
Svg: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, callback=_in_a_folder, help="Write a picture of the last screen."),
]


def demo(jobs: Jobs = USUAL_JOBS, seed: Seed = 1, svg: Svg = None, as_json: AsJson = False) -> None:
    """Watch a small shop's jobs run, fail, die and be rescued; it ends by itself in well under a minute.

    On an embedded PostgreSQL (needs jobq[embedded]), in a database of its own: orders enqueue their receipts in one
    transaction, two worker processes work, one of them is killed on the way. The numbers at the end are read from
    the database, which stays for a while. Exit code 1 when they do not add up.

    \b
    Examples:
      jobq demo
      jobq demo --jobs 1000 --seed 7
    """
    with _ended_by_signals(), database() as engine:
        pace = Pace.of(jobs, seed)
        with closing(_screen(as_json=as_json)) as screen, Fleet(engine.url, pace) as fleet:
            course = Course(engine, fleet, screen, jobs=jobs, pace=pace)
            view = course.run()
        with engine.connect() as connection:
            summary = numbers.read(connection)
        commands = ending.commands(engine.url, summary)
    if as_json:
        print_json([{**as_dict(summary), "commands": commands}])
    else:
        _print(summary, commands)
    if svg is not None:
        ending.draw_picture(svg, course.told, view, summary)
    if not all(is_right for is_right, _ in numbers.told(summary)):
        raise typer.Exit(1)


def _screen(*, as_json: bool) -> Screen:
    """The view is words where the summary is data."""
    stream = sys.stderr if as_json else sys.stdout
    return LiveScreen(Console(file=stream, highlight=False)) if stream.isatty() else PlainScreen(stream)


def _print(summary: numbers.Summary, commands: list[str]) -> None:
    console = Console(highlight=False)
    console.print()
    console.print(ending.summarized(summary), soft_wrap=True)
    console.print()
    for line in ending.further(commands):
        console.print(line, markup=False, soft_wrap=True)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: its workers first."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        say("stopped; the database stays for a while (jobq db stop ends it)")
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
