"""What is left to read when the demo is over: its summary, the commands to look further, a picture of both."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from io import StringIO
from pathlib import Path

import sqlalchemy as sa
from rich.console import Console, Group, RenderableType
from rich.text import Text

from jobq_cli.demo import numbers
from jobq_cli.demo.database import LINGER_MINUTES
from jobq_cli.demo.fleet import APP
from jobq_cli.demo.numbers import Summary
from jobq_cli.demo.screen import WIDTH, View, drawn
from jobq_cli.failures import Failed


def summarized(summary: Summary) -> RenderableType:
    """The sentences of the summary, each ticked off."""
    lines = [Text("What the database says:", style="bold")]
    for is_right, sentence in numbers.told(summary):
        mark = ("ok  ", "bold green") if is_right else ("NO  ", "bold red")
        lines.append(Text.assemble(mark, sentence))
    return Group(*lines)


def commands(url: sa.URL, summary: Summary) -> list[str]:
    """Lines for a shell, to be run in the folder of the demo."""
    jobq, database = program(), '--database-url "$DEMO"'
    dead = f" {summary.dead_jobs[0]}" if summary.dead_jobs else " 1"
    return [
        f"DEMO={shlex.quote(url.render_as_string(hide_password=False))}",
        f"{jobq} stats {database}",
        f"{jobq} list {database} --state dead",
        f"{jobq} show {database}{dead}",
        f"{jobq} retry {database}{dead}",
        f"{jobq} run {APP} {database}",
        f"{jobq} db stop",
    ]


def further(lines: list[str]) -> list[str]:
    """The commands with what is said about them."""
    remark = f"Look further (the database stays for {LINGER_MINUTES} minutes, `db stop` ends it at once):"
    return [remark, *(f"  {line}" for line in lines)]


def program() -> str:
    """How this program was called, so that it can be called again."""
    called = Path(sys.argv[0])
    if called.name != "jobq":
        return f"{shlex.quote(sys.executable)} -m jobq"
    found = shutil.which("jobq")
    if found is not None and Path(found).resolve() == called.resolve():
        return "jobq"
    path = os.path.relpath(called)
    return shlex.quote(path if os.sep in path else f".{os.sep}{path}")


def draw_picture(path: Path, told: list[str], view: View, summary: Summary) -> None:
    """An SVG of the terminal: what happened, the last view, the summary. It loads nothing, not even a font."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    happened = [Text(f"- {line}", style="dim") for line in told]
    for part in (Text("$ jobq demo", style="bold"), *happened, Text(), drawn(view), Text(), summarized(summary)):
        console.print(part)
    svg = console.export_svg(title="jobq demo", unique_id="jobq-demo")
    try:
        path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from error
