"""`jobq top`: once in a pipe, live on a terminal."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from terminal import Step, on_a_terminal

from jobq_cli.top.screen import ENTER, HOME, LEAVE

pytestmark = pytest.mark.duty("read")

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rows(rows: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> sa.Connection:
    """The terminal is one that can be drawn on."""
    monkeypatch.setenv("TERM", "xterm")
    return rows


def runs(rows: sa.Connection, message: str = "page 4 of 10") -> int:
    add_worker(rows, 7, name="w7")
    meta = {"progress": {"fraction": 0.4, "message": message, "attempt": 1}}
    began = NOW - timedelta(seconds=70)
    return add_job(rows, queue="email", worker_id=7, attempt=1, attempted_at=began, meta=meta)


def test_in_a_pipe_it_is_printed_once_and_plainly(rows: sa.Connection, jobq: Command) -> None:
    job_id = runs(rows, "\x1b[2Jpage")

    code, out, err = jobq("top")

    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert f"{job_id}  email.send  email  w7      1m 10s        -  ████░░░░░░  40%  \\x1b[2Jpage" in out
    assert jobq("top", "--once")[1].count("email.send") == 1


def test_as_json_it_is_one_object(rows: sa.Connection, jobq: Command) -> None:
    job_id = runs(rows)

    (line,) = jobq("top", "--json")[1].splitlines()

    found = json.loads(line)
    assert (found["jobs"][0]["id"], found["jobs"][0]["progress"]["fraction"]) == (job_id, 0.4)
    assert found["jobs"][0]["runs_for_seconds"] >= 70
    assert (found["workers"][0]["name"], found["workers"][0]["running"]) == ("w7", 1)
    assert [queue["queue"] for queue in found["queues"]] == ["email"]
    assert found["running"] == 1


def test_f65_a_queue_that_nobody_knows_is_said(rows: sa.Connection, jobq: Command) -> None:
    runs(rows)

    code, out, err = jobq("top", "--queue", "emial")

    assert (code, err) == (0, "no queue emial (see: jobq stats)\n")
    assert "nothing runs" in out


@pytest.mark.parametrize("every", ["soon", "0.01s", "0s"])
def test_f65_a_pause_that_is_none_is_wrong_usage(every: str, rows: sa.Connection, jobq: Command) -> None:
    code, out, err = jobq("top", "--every", every)

    assert (code, out, err.count("\n")) == (2, "", 1)


def test_on_a_terminal_it_is_drawn_again_and_again_until_q(rows: sa.Connection) -> None:
    runs(rows)

    code, shown = on_a_terminal("top", "--every", "0.1s", steps=[Step(HOME, 3, keys=b"xq")])

    assert code == 0
    assert shown.startswith(ENTER)
    assert shown.endswith(LEAVE)
    assert "email.send" in shown


def test_a_terminal_that_knows_ascii_alone_keeps_its_lines(
    rows: sa.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs(rows, "Seite 4 \u2013 " + 60 * "x")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    code, shown = on_a_terminal("top", "--every", "1h", steps=[Step("q quits", keys=b"q")])

    assert code == 0
    assert "####......  40%" in shown
    assert "Seite 4 ? xx" in shown
    assert "\\u20" not in shown


def test_f65_a_queue_that_nobody_knows_is_said_on_a_terminal_too(rows: sa.Connection) -> None:
    _, shown = on_a_terminal("top", "--queue", "emial", "--every", "1h", steps=[Step("q quits", keys=b"q")])

    assert "no queue emial (see: jobq stats)" in shown


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_terminal_as_it_was(number: signal.Signals, code: int, rows: sa.Connection) -> None:
    ended, shown = on_a_terminal("top", "--every", "1h", steps=[Step(HOME, signal=number)])

    assert ended == code
    assert shown.endswith(LEAVE)
    assert "Traceback" not in shown


def test_a_terminal_that_changes_its_size_is_drawn_anew_at_once(rows: sa.Connection) -> None:
    runs(rows)
    steps = [
        Step("q quits", keys=b"x", size=(30, 40), signal=signal.SIGWINCH),
        Step("q quits", 2, keys=b"q"),
    ]

    code, shown = on_a_terminal("top", "--every", "1h", steps=steps, size=(30, 120))

    assert code == 0
    assert "page 4 of 10" in shown.split(HOME)[1]
    assert "page 4 of 10" not in shown.split(HOME)[2]


def test_a_terminal_that_cannot_be_drawn_on_gets_it_once(rows: sa.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(rows)
    monkeypatch.setenv("TERM", "dumb")

    code, shown = on_a_terminal("top")

    assert code == 0
    assert "email.send" in shown
    assert "\x1b" not in shown
