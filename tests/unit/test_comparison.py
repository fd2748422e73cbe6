"""What tests/bench/compare.py makes of the lines of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

BENCH = Path(__file__).parents[1] / "bench"
sys.path.insert(0, str(BENCH))

from comparing.chart import chart  # noqa: E402
from comparing.environments import PACKAGES, installed  # noqa: E402
from comparing.figures import TARGETS, medians, reached  # noqa: E402
from comparing.measures import Sizes  # noqa: E402
from comparing.table import report  # noqa: E402

ABOUT = {
    "date": "2026-11-30", "cores": "2", "processor": "a & b", "system": "Linux", "python": "3.11",
    "server_version": "18.6 (x)", "fsync": "on", "synchronous_commit": "on",
}  # fmt: skip


def line(queue: str, measure: str, round_: int, **numbers: Any) -> dict[str, Any]:
    return {"queue": queue, "measure": measure, "round": round_, **numbers}


def info(queue: str) -> dict[str, Any]:
    about = {"settings": "as they are", "loop": "uvloop", "at_once": "3 at a time"}
    return {"queue": queue, "measure": "info", "package": queue, "version": "1.0", **about}


LINES = [
    info("jobq"),
    info("raw"),
    *[line("jobq", "drain1", n, rate=rate) for n, rate in enumerate((900.0, 30_000.0, 31_000.0))],
    *[line("raw", "drain1", n, rate=rate) for n, rate in enumerate((1_000.0, 60_000.0, 62_000.0))],
    line("jobq", "history", 0, rate=15_000.0, log_lines=4),
    line("jobq", "history", 1, rate=15_000.0, log_lines=3),
    line("raw", "history", 0, failed="it <broke>"),
]


def target(words: str) -> Any:
    return next(each for each in TARGETS if each.words == words)


def test_a_figure_is_the_median_of_the_rounds_that_did_not_fail() -> None:
    assert medians(LINES) == {
        ("jobq", "drain1"): {"rate": 30_000.0},
        ("raw", "drain1"): {"rate": 60_000.0},
        ("jobq", "history"): {"rate": 15_000.0},
    }


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    assert reached(target("drain: jobq / raw"), LINES) == 0.5  # of 0.9, 0.5 and 0.5
    assert reached(target("drain: jobq / pgqueuer"), LINES) is None
    assert reached(target("pick-up, p50 in ms"), LINES) is None


def test_the_table_says_what_was_measured_what_it_must_be_and_what_failed() -> None:
    told = report(LINES, ABOUT, Sizes(), 3)

    assert "| drain, 1 process, jobs/s | 30 000 | 60 000 |" in told
    assert "| drain beside many finished and scheduled jobs, jobs/s | 15 000 | - |" in told
    assert "| drain: jobq / raw | 0.50 | 0.5 | 0.75 |" in told
    assert "pgqueuer" not in told
    assert "it <broke>" in told
    assert "2026-11-30, 2 cores (a & b)" in told
    assert "| lines of log that the workers wrote, all rounds | 7 | 0 |" in told
    assert "- **raw** (raw 1.0, uvloop): as they are" in told


def test_the_chart_has_a_bar_for_each_rate_as_long_as_it_is_high() -> None:
    drawn = ElementTree.fromstring(chart(LINES, ABOUT, 3))

    widths = [float(each.attrib["width"]) for each in drawn if each.tag.endswith("rect")][2:]  # after the legend
    assert [round(width / max(widths), 2) for width in widths] == [0.5, 0.25, 1.0]


def test_the_chart_says_what_its_bars_depend_on() -> None:
    drawn = chart(LINES, ABOUT, 3)

    assert "2026-11-30, 2 cores, PostgreSQL 18.6, fsync on" in drawn
    assert "Python 3.11; medians of 3 rounds" in drawn
    assert "jobq 1.0: uvloop, 3 at a time" in drawn


def test_what_is_not_installed_is_left_out_and_said(tmp_path: Path, capsys: Any) -> None:
    assert installed(["jobq", "raw"], tmp_path, install=False) == {"jobq": sys.executable}
    assert "raw is left out" in capsys.readouterr().err


def test_there_is_a_script_for_every_queue_that_can_be_installed() -> None:
    assert {path.stem for path in (BENCH / "peers").glob("peer_*.py")} == {f"peer_{name}" for name in PACKAGES}
