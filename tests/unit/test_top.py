"""The screen of `jobq top`, as lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobq.model import Progress
from jobq.overview import Member, Overview, RunningJob
from jobq.report import QueueStats, Stats, WorkerRow
from jobq_cli.output import Column
from jobq_cli.top.frame import BLOCKS, Size, bar, frame
from jobq_cli.top.layout import Line, cells_of, cropped, cut, shares, table
from jobq_cli.top.screen import plain

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PLAIN, BELL = BLOCKS[1], "\x07\x1b[31mred\n"


def worker(number: int, **values: Any) -> Member:
    row = WorkerRow(
        id=number, name=f"w{number}", hostname="h", pid=1, version="0", queues=None, kinds=(), concurrency=20,
        started_at=NOW - 90 * SECOND, lease_until=NOW + 50 * SECOND, alive=True, is_leader=False, running=0,
        read_at=NOW,
    )  # fmt: skip
    return Member(replace(row, **values), 4 * SECOND)


def job(number: int, **values: Any) -> RunningJob:
    plain = RunningJob(
        id=number, queue="default", kind="report", priority=1, attempt=1, worker_id=7, worker="w7",
        runs_for=number * SECOND, timeout=None, progress=None,
    )  # fmt: skip
    return replace(plain, **values)


def overview(*, queues: int = 0, members: int = 0, jobs: int = 0, running: int | None = None) -> Overview:
    found = tuple(QueueStats(f"q{n}", ready=n, running=n) for n in range(queues))
    return Overview(
        Stats(NOW, queues=found),
        tuple(worker(n, running=n) for n in range(members)),
        tuple(job(n) for n in range(jobs, 0, -1)),
        jobs if running is None else running,
    )


def texts(lines: list[Line]) -> list[str]:
    return plain(lines).split("\n")


def style_of(lines: list[Line], text: str) -> str:
    return next(style for line in lines for piece, style in line if text in piece)


def test_all_of_it_is_there_in_three_tables() -> None:
    found = Overview(
        Stats(NOW, queues=(QueueStats("email", ready=10_000, more_ready=True, running=2, oldest_due=340 * SECOND),)),
        (worker(1, is_leader=True, running=2), worker(2, alive=False, left_behind=1)),
        (
            job(5, runs_for=70 * SECOND, timeout=60 * SECOND, progress=Progress(0.42, "page 4 of 10", 1)),
            job(6, worker=None, runs_for=SECOND),
        ),
        2,
    )

    lines = frame(found, Size(blocks=PLAIN))

    assert texts(lines) == [
        "12:00:05 UTC  1 live worker, 2 running, 10000+ ready, oldest 5m 40s, 0.0 per s",
        "",
        "queue   ready  running  scheduled  dead  per s  oldest",
        "email  10000+        2          0     0    0.0  5m 40s",
        "",
        "worker       running  left behind      up         heard",
        "w1 (leader)     2/20            0  1m 30s        4s ago",
        "w2              0/20            1  1m 30s  4s ago, lost",
        "",
        "job  kind    queue    worker     for  timeout  progress",
        "  5  report  default  w7      1m 10s       1m  ####......  42%  page 4 of 10",
        "  6  report  default  lost        1s        -",
    ]
    assert style_of(lines, "1m 10s") == style_of(lines, "4s ago, lost") == style_of(lines, "lost  ") == "red"


def test_an_idle_installation_says_so() -> None:
    assert texts(frame(overview(), Size())) == [
        "12:00:05 UTC  0 live workers, 0 running, 0 ready, oldest -, 0.0 per s",
        "", "no queues yet",
        "", "no workers (start one with: jobq run module:app)",
        "", "nothing runs",
    ]  # fmt: skip


@pytest.mark.parametrize("height", [1, 5, 10, 24, 50])
@pytest.mark.parametrize("width", [1, 20, 80, 200])
def test_no_line_and_no_column_is_beyond_the_terminal(width: int, height: int) -> None:
    lines = frame(overview(queues=9, members=30, jobs=70), Size(width, height))

    assert len(lines) <= height
    assert max(map(cells_of, texts(lines))) <= width
    assert width < 10 or height <= 10 or texts(lines)[-1] == "q quits"


def test_what_does_not_fit_is_counted_and_the_rest_stays_in_its_order() -> None:
    lines = texts(frame(overview(queues=3, members=30, jobs=70, running=600), Size(80, 24)))

    assert [line.split()[0] for line in lines if line[:1] == "q" and line[1:2].isdigit()] == ["q0", "q1", "q2"]
    assert [line.split()[0] for line in lines if line.startswith("w") and "/" in line] == [
        "w25",
        "w26",
        "w27",
        "w28",
        "w29",
    ]
    assert "and 25 more" in lines
    shown = [int(line.split()[0]) for line in lines if "report" in line]
    assert shown == list(range(70, 70 - len(shown), -1))
    assert f"and {600 - len(shown)} more" in lines


def test_workers_in_trouble_are_shown_before_busy_ones() -> None:
    found = replace(overview(), members=(*[worker(n, running=9) for n in range(30)], worker(99, alive=False)))

    assert any("w99" in line for line in texts(frame(found, Size(80, 24))))


def test_what_handlers_and_workers_say_cannot_drive_the_terminal() -> None:
    found = Overview(
        Stats(NOW), (worker(1, name=BELL),), (job(1, worker=BELL, progress=Progress(0.5, BELL * 9, 1)),), 1
    )

    for line in texts(frame(found, Size(60, 24))):
        assert line.isprintable()


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.0, "..........   0%"),
        (0.099, "..........   9%"),
        (0.5, "#####.....  50%"),
        (0.999, "#########.  99%"),
        (1.0, "########## 100%"),
    ],
)
def test_a_bar_is_full_only_when_it_is(fraction: float, shown: str) -> None:
    assert bar(Progress(fraction), PLAIN) == shown
    assert bar(None, PLAIN) == ""


@pytest.mark.parametrize(
    ("space", "wanted", "given"),
    [
        (12, [1, 2, 3], [1, 2, 3]),
        (12, [1, 50, 50], [1, 6, 5]),
        (3, [9, 9, 9], [1, 1, 1]),
        (0, [1, 1, 1], [0, 0, 0]),
        (7, [0, 0, 9], [0, 0, 7]),
    ],
)
def test_lines_are_shared_out(space: int, wanted: list[int], given: list[int]) -> None:
    assert shares(space, wanted) == given


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("北京", 4), ("é", 1), ("e\u0301", 1), ("\u200b", 0), ("", 0), ("😀", 2)]
)
def test_a_text_takes_the_cells_that_a_terminal_gives_it(text: str, cells: int) -> None:
    assert cells_of(text) == cells


def test_a_text_is_cut_between_characters() -> None:
    assert (cut("北京北京", 8), cut("北京北京", 7), cut("北京北京", 6)) == ("北京北京", "北京北…", "北京…")
    assert cropped([("abc", "bold"), ("defg", "")], 5) == [("abc", "bold"), ("d…", "")]


def test_wide_characters_do_not_move_the_columns() -> None:
    columns: list[Column[str]] = [Column("name", lambda text: text), Column("n", lambda text: "1", right=True)]

    lines = plain(table(["北京", "abcde"], columns, 80)).split("\n")

    assert [cells_of(line) for line in lines] == [8, 8, 8]
