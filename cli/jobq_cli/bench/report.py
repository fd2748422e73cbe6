"""A run as a table for people and as a document for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jobq_cli.bench import figures, machine, statements
from jobq_cli.bench.bench import Bench
from jobq_cli.bench.figures import Compared, Figure
from jobq_cli.bench.fleet import has_metrics
from jobq_cli.bench.scratch import SETTINGS
from jobq_cli.output import Column, print_table
from jobq_cli.text import printable

PACKAGES = ("jobq", "SQLAlchemy", "psycopg", "anyio")
LARGE = 1_000  # from here on without a fraction
METRICS = {
    True: "every worker counted for its metrics port",
    False: "the workers had no metrics port: that needs jobq[prometheus]",
}


def conditions(bench: Bench) -> dict[str, Any]:
    """All that figures depend on."""
    with bench.scratch.keeper.connect() as connection:
        read = {name: connection.execute(statements.setting(), {"name": name}).scalar_one() for name in SETTINGS}
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": machine.kind(),
        "server": {**read, "embedded": bench.scratch.is_embedded},
        "versions": {name: version(name) for name in PACKAGES},
        "sizes": asdict(bench.sizes),
        "log_lines": bench.log_lines,
        "metrics": has_metrics(),
    }


def document(found: Sequence[Figure], about: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` writes."""
    return {"format": 1, **about, "figures": [figures.as_json(figure) for figure in found]}


def earlier(path: Path) -> dict[str, float]:
    """The figures of a run that `--json` has written. Raises: OSError, ValueError."""
    return figures.read(json.loads(path.read_text()))


def show(found: Sequence[Compared], about: Mapping[str, Any], *, with_before: bool) -> None:
    """The table, and below it what it depends on. Beside an earlier run there is no room for what it has to be."""
    print_table(found, [*FIGURES, *(BEFORE if with_before else BOUNDS), *SAID])
    print()
    for line in _words(about):
        print(printable(line))


def _words(about: Mapping[str, Any]) -> list[str]:
    kind, server = about["machine"], about["server"]
    sizes = about["sizes"]
    rounds = "1 round" if sizes["rounds"] == 1 else f"{sizes['rounds']} rounds, medians"
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return [
        f"{about['date']}: {kind['cores']} cores ({kind['processor']}), {kind['system']}, Python {kind['python']}",
        f"PostgreSQL {server['server_version']}{' (embedded)' if server['embedded'] else ''}, "
        + ", ".join(f"{name} {server[name]}" for name in SETTINGS[1:]),
        versions,
        f"{rounds}; {sizes['concurrency']} jobs at a time; the workers wrote"
        f" {about['log_lines']} lines of log while they drained",
        METRICS[about["metrics"]],
    ]


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= LARGE else f"{value:.3g}"


def _bound(figure: Figure, bound: float | None) -> str:
    if bound is None:
        return ""
    return f"{'>=' if figure.more_is_better else '<='} {bound:g}"


def _style(one: Compared) -> str:
    return "red" if one.figure.is_missed else ""


def _said(one: Compared) -> str:
    return " ".join(word for word, holds in (("missed", one.figure.is_missed), ("worse", one.is_worse)) if holds)


FIGURES: list[Column[Compared]] = [
    Column("measure", lambda one: one.figure.measure),
    Column("", lambda one: one.figure.name, shrinks=True, wraps=True),
    Column("value", lambda one: _number(one.figure.value), right=True, style=_style),
    Column("unit", lambda one: one.figure.unit),
]
BOUNDS: list[Column[Compared]] = [
    Column("must", lambda one: _bound(one.figure, one.figure.must), right=True),
    Column("aim", lambda one: _bound(one.figure, one.figure.aim), right=True),
]
BEFORE: list[Column[Compared]] = [
    Column("before", lambda one: "-" if one.before is None else _number(one.before), right=True),
    Column("ratio", lambda one: "-" if one.ratio is None else f"{one.ratio:.2f}", right=True),
]
SAID: list[Column[Compared]] = [Column("", _said, style=lambda _: "red")]
