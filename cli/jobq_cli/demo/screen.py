"""The demo's live view on a terminal, and its plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any, Protocol, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jobq.report import QueueStats, Stats, WorkerRow
from jobq_cli.text import printable

RECENT = 6
LONGEST = 33  # characters of an outcome that fit beside the rest
WIDTH = 80  # columns; more are not used
LINE_SECONDS = 1.0  # plain lines of progress come so often
STYLES = {"done": "green", "dead": "bold red", "retry": "yellow", "rescued": "bold magenta"}


@dataclass(frozen=True, slots=True)
class View:
    """What is shown at one moment; all but the killed workers' names and the seconds is read from the database."""

    stats: Stats
    ended: int
    total: int
    workers: Sequence[WorkerRow]
    recent: Sequence[Any]
    killed: frozenset[str] = frozenset()
    seconds: float = 0.0


class Screen(Protocol):
    """Where the demo shows what happens."""

    def show(self, view: View) -> None:
        """The state of things has changed."""

    def tell(self, line: str) -> None:
        """Something happened that is worth a line."""

    def close(self) -> None:
        """The last state of things stays."""


@dataclass(slots=True)
class PlainScreen:
    """Lines: what happens, and once a second how far it is."""

    stream: TextIO
    _shown_at: float = field(default=0.0)

    def show(self, view: View) -> None:
        if monotonic() - self._shown_at >= LINE_SECONDS:
            self._shown_at = monotonic()
            self.tell(f"{view.ended} of {view.total} jobs ended, {sum(each.running for each in view.workers)} running")

    def tell(self, line: str) -> None:
        print(printable(line), file=self.stream, flush=True)

    def close(self) -> None:
        return None


class LiveScreen:
    """Drawn in place, several times a second."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def show(self, view: View) -> None:
        self._live.update(drawn(view), refresh=True)

    def tell(self, line: str) -> None:
        self._live.console.print(Text(f"- {printable(line)}", style="dim"))

    def close(self) -> None:
        self._live.stop()


def drawn(view: View) -> RenderableType:
    """The whole view."""
    return Group(_progress(view), Text(), _queues(view.stats.queues), Text(), _workers(view), Text(), _recent(view))


def _progress(view: View) -> RenderableType:
    row = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=view.total, completed=view.ended, width=52, finished_style="green")
    row.add_row(Text("jobs", style="bold"), bar, Text(f"{view.ended} of {view.total}"), Text(f"{view.seconds:.0f} s"))
    return row


def _queues(queues: Sequence[QueueStats]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("queue", min_width=14)
    for name in ("ready", "scheduled", "running", "done", "dead"):
        table.add_column(name, justify="right", min_width=9)
    for each in queues:
        numbers = (each.ready, each.scheduled, each.running, each.done, each.dead)
        styles = ("cyan", "cyan", "blue", "green", "bold red")
        cells = [
            Text(str(value), style=style if value else "dim") for value, style in zip(numbers, styles, strict=True)
        ]
        table.add_row(Text(printable(each.queue)), *cells)
    return table


def _workers(view: View) -> RenderableType:
    """Those with a row; one that was killed has it until its lease runs out."""
    row = Table.grid(padding=(0, 3))
    alive = [
        Text(f"{printable(each.name)} runs {each.running}", "green") for each in view.workers if _lives(view, each)
    ]
    killed = [Text(f"{printable(name)} killed", "bold red") for name in sorted(view.killed)]
    row.add_row(Text("workers", style="bold"), *killed, *alive)
    return row


def _lives(view: View, worker: WorkerRow) -> bool:
    return worker.name not in view.killed


def _recent(view: View) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for row in [*view.recent, *[None] * (RECENT - len(view.recent))]:
        if row is None:
            table.add_row(Text(" "))
            continue
        word = Text(row.state, style=STYLES.get(row.state, ""))
        cells = (_clock(row.at), f"job {row.id}", printable(row.kind))
        table.add_row(*[Text(cell, no_wrap=True) for cell in cells], word, Text(_what(row), no_wrap=True))
    return table


def _what(row: Any) -> str:
    text = f"its worker {row.outcome} was lost" if row.state == "rescued" else printable(row.outcome or "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%H:%M:%S}"
