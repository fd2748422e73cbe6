"""`jobq bench`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from jobq_cli.bench import figures, probe, report
from jobq_cli.bench.bar import bar
from jobq_cli.bench.bench import Bench
from jobq_cli.bench.course import NAMES, course, steps
from jobq_cli.bench.scratch import scratch
from jobq_cli.bench.sizes import FULL, QUICK, Sizes


def _chosen(value: str | None) -> str | None:
    unknown = sorted(set(value.split(",")) - set(NAMES)) if value else []
    if unknown:
        raise typer.BadParameter(f"there is no measure {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    return value


def _earlier(value: Path | None) -> Path | None:
    try:
        if value is not None:
            report.earlier(value)
    except OSError as error:
        raise typer.BadParameter(f"{value} cannot be read: {error.strerror}") from None
    except ValueError:
        raise typer.BadParameter(f"{value} is no file that jobq bench --json has written") from None
    return value


def _writable(value: Path | None) -> Path | None:
    if value is not None and not value.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {value.parent}")
    return value


Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Small numbers and one round: under a minute or so.")]
Only: TypeAlias = Annotated[
    str | None, typer.Option(metavar="A,B", callback=_chosen, help=f"Only these measures, of {', '.join(NAMES)}.")
]
Json: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", dir_okay=False, callback=_writable, help="Write all of it there."),
]
Against: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", callback=_earlier, help="Compare with what --json has written before."),
]
Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--database-url", metavar="URL", help="Measure on this server, by default on an embedded one."),
]


def bench(
    quick: Quick = False,
    only: Only = None,
    json_file: Json = None,
    against: Against = None,
    database_url: Url = None,
) -> None:
    """Measure how fast jobq is on this machine, on databases made for it that are dropped at the end.

    On an embedded PostgreSQL (needs jobq[embedded]), or on the server of --database-url; JOBQ_DATABASE_URL and
    DATABASE_URL are not read. Workers are processes of `jobq run`, with everything on: fences, leases, retries,
    outcomes, the log. Ratios are medians of rounds that take turns; "must" and "aim" are what jobq holds itself to.
    Figures of two machines, or of a busy one, cannot be compared.

    \b
    Examples:
      jobq bench --quick
      jobq bench --only drain,latency --json today.json
      jobq bench --json new.json --against old.json
    """
    names = frozenset(only.split(",")) if only else frozenset(NAMES)
    found, about = _run(names, QUICK if quick else FULL, database_url)
    before = report.earlier(against) if against is not None else {}
    report.show(figures.compared(found, before), about, with_before=against is not None)
    if json_file is not None:
        json_file.write_text(json.dumps(report.document(found, about), indent=2) + "\n")


def _run(names: frozenset[str], sizes: Sizes, url: str | None) -> tuple[list[figures.Figure], dict[str, Any]]:
    path = probe.create()
    try:
        with scratch(url) as made, bar(steps(names, sizes.rounds)) as tell:
            bench = Bench(made, sizes, path, tell)
            return list(course(bench, names)), report.conditions(bench)
    finally:
        os.unlink(path)
