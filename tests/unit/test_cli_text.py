from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.report import QueueStats
from jobq_cli import text

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param("plain, bé, 日本", "plain, bé, 日本", id="left alone"),
        pytest.param("\x1b[31mred\x07", "\\x1b[31mred\\x07", id="terminal commands"),
        pytest.param("a\nb\r\tc", "a\\nb\\r\\tc", id="line breaks"),
        pytest.param("\x9b1m \x7f", "\\x9b1m \\x7f", id="C1 and DEL"),
        pytest.param("a\u202eb\u2066", "a\\u202eb\\u2066", id="marks that reorder"),
        pytest.param("\udc80", "\\udc80", id="lone surrogate"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_printed_raw(raw: str, shown: str) -> None:
    assert text.printable(raw) == shown


@given(st.text(st.characters()))
def test_printable_text_is_one_line_that_can_be_encoded(raw: str) -> None:
    shown = text.printable(raw)

    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert shown.encode().decode() == shown


@given(st.text(st.characters()))
def test_a_json_line_is_printable_ascii_and_means_the_same(raw: str) -> None:
    line = text.json_line({"text": raw})

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"text": raw}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"), (0.0004, "1ms"), (0.34, "340ms"), (1, "1s"), (2.5, "2.5s"), (12.4, "12s"), (60, "1m"),
        (200, "3m 20s"), (2999, "49m"), (3600, "1h"), (7500, "2h 5m"), (86_399, "23h"), (356_400, "4d 3h"),
        (86_400_000, "1000d"), (-5, "0s"),
    ],
)  # fmt: skip
def test_spans_are_short_and_keep_two_digits_of_sense(seconds: float, shown: str) -> None:
    assert text.span(timedelta(seconds=seconds)) == shown


def test_no_span_and_no_time_are_a_dash() -> None:
    assert (text.span(None), text.moment(None), text.ago(None, NOW)) == ("-", "-", "-")


@pytest.mark.parametrize(("offset", "shown"), [(-200, "3m 20s ago"), (0, "0s ago"), (5, "in 5s")])
def test_times_are_told_from_now(offset: int, shown: str) -> None:
    assert text.ago(NOW + timedelta(seconds=offset), NOW) == shown


def test_moments_are_utc() -> None:
    assert text.moment(datetime.fromisoformat("2026-03-01T14:00:05+02:00")) == "2026-03-01 12:00:05 UTC"


def test_a_count_that_stopped_at_its_bound_says_so() -> None:
    assert (text.number(7), text.number(10_000, more=True)) == ("7", "10000+")


def test_spans_in_json_are_seconds_and_named_so() -> None:
    found = text.as_dict(QueueStats("q", oldest_due=timedelta(minutes=2), paused_until=NOW))

    shown = json.loads(text.json_line(found))
    assert (shown["oldest_due_seconds"], shown["paused_until"]) == (120.0, "2026-03-01T12:00:05+00:00")
    assert json.loads(text.json_line(text.as_dict(QueueStats("q"))))["oldest_due_seconds"] is None


def test_a_traceback_keeps_its_lines() -> None:
    assert text.printable_lines("a\n\tb\x1b\n") == ["a", "        b\\x1b"]


def test_f70_nothing_here_makes_pages_of_html() -> None:
    """So nothing of a job can be put into one raw; the ports answer in plain text."""
    root = Path(__file__).parents[2]
    sources = [path for folder in ("jobq", "cli", "alembic", "examples") for path in (root / folder).rglob("*.py")]
    html = re.compile(r"text/html|<html|<body|HTMLResponse|render_template|Markup\(", re.IGNORECASE)

    assert len(sources) > 100
    assert [path.name for path in sources if html.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("running", "concurrency", "shown"),
    [(0, 20, "0/20"), (20, 20, "20/20"), (869, 20, "20/20 +849"), (3, None, "3/-")],
)
def test_a_load_tells_what_runs_from_what_was_claimed_ahead(running: int, concurrency: int | None, shown: str) -> None:
    assert text.load(running, concurrency) == shown
