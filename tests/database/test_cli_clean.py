from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker
from terminal import Step, on_a_terminal

from jobq.store.leading import campaign
from jobq_cli import watch
from jobq_cli.commands import stats as command

pytestmark = pytest.mark.duty("operate")

EXPIRED = {"finished_at": NOW - timedelta(days=2), "expires_at": NOW - timedelta(days=1)}


def left(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.text("SELECT count(*) FROM jobq.finished_jobs")) or 0)


def test_clean_counts_first_where_asked_and_then_deletes(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    for state in ("done", "dead"):
        add_ended(rows, state, **EXPIRED)
    add_ended(rows)

    assert jobq("clean", "--dry-run") == (0, "would delete 2 jobs\n", "")
    assert left(rows) == 3
    assert jobq("clean") == (0, "deleted 2 jobs\n", "")
    assert left(rows) == 1
    assert jobq("clean") == (0, "deleted 0 jobs\n", "")


def test_clean_tells_its_counts_as_json(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    add_ended(rows, **EXPIRED)

    dry = json.loads(jobq("clean", "--dry-run", "--json")[1])
    wet = json.loads(jobq("clean", "--json")[1])

    assert dry == {"expired": 1, "deleted": 0, "dry_run": True}
    assert wet == {"expired": 1, "deleted": 1, "dry_run": False}


def test_a_person_sees_a_bar_while_very_many_are_deleted(rows: sa.Connection) -> None:
    rows.exec_driver_sql("""
        INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta,
                                        errors, state, finished_at, expires_at)
        SELECT n, 'q', 'k', '{}', 1, at, 1, 0, at, '{}', '[]', 'done', at, at
        FROM generate_series(1, 25000) n, (SELECT now() - interval '2 days' AS at) AS old
    """)

    code, shown = on_a_terminal("clean")

    assert (code, left(rows)) == (0, 0)
    assert "25000/25000" in shown
    assert "deleted 25000 jobs" in shown


def test_stats_fail_when_a_due_job_is_older_than_asked_and_name_its_queue(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    add_job(rows, queue="email", run_at=NOW - timedelta(minutes=12))
    add_job(rows, queue="images", run_at=NOW - timedelta(minutes=7))
    add_job(rows, queue="later", run_at=NOW + timedelta(hours=1))

    code, out, err = jobq("stats", "--fail-if-older", "5m")
    quiet = jobq("stats", "--fail-if-older", "1h", "--json")

    assert (code, err) == (1, "error: queue email: its oldest due job waits for 12m (and 1 more): see jobq stats\n")
    assert "email" in out
    assert (quiet[0], quiet[2]) == (0, "")


def test_an_alert_on_a_paused_queue_says_that_it_is_paused(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    add_job(rows, queue="email", run_at=NOW - timedelta(minutes=12))
    rows.exec_driver_sql("INSERT INTO jobq.queues (name, paused_until) VALUES ('email', '2999-01-01')")

    assert "paused until 2999-01-01 00:00:00 UTC" in jobq("stats", "--fail-if-older", "5m")[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-if-older", "soon"], "'soon' is no span of time: write 90s, 5m, 1h30m or 2d"),
        (["--fail-if-older", "5m", "--watch"], "--fail-if-older answers once; it does not go with --watch"),
        (["--every", "2s"], "--every says how often --watch looks: add --watch"),
    ],
)
def test_options_of_stats_that_make_no_sense_are_wrong_usage(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], options: list[str], said: str
) -> None:
    code, out, err = jobq("stats", *options)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_watch_shows_it_again_and_again_until_it_is_interrupted(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt
        add_job(rows)

    monkeypatch.setattr(watch, "_sleep", wait)

    code, out, err = jobq("stats", "--watch", "--every", "0.5s", "--json")

    assert (code, err, waits) == (130, "", [0.5] * 3)
    assert [json.loads(line)["queues"][0]["ready"] if n else 0 for n, line in enumerate(out.splitlines())] == [0, 1, 2]


def test_watch_in_a_pipe_prints_one_frame_after_another(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames: list[float] = []

    def wait(seconds: float) -> None:
        frames.append(seconds)
        if len(frames) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_sleep", wait)

    out = jobq("stats", "--watch")[1]

    assert out.count("0 pending, 0 running") == 2
    assert "\x1b" not in out


def test_on_a_terminal_watch_draws_in_place_until_ctrl_c(rows: sa.Connection) -> None:
    until = Step(command.CLEAR, 3, signal=signal.SIGINT)

    code, shown = on_a_terminal("stats", "--watch", "--every", "0.1s", steps=[until])

    assert code == 130
    assert shown.startswith(command.CLEAR)
    assert "Traceback" not in shown


def test_the_workers_are_listed_with_the_leader_marked(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    for worker_id in (7, 8):
        add_worker(rows, worker_id)
    campaign(rows, 8, timedelta(seconds=60))

    told = [json.loads(line) for line in jobq("workers", "--json")[1].splitlines()]

    assert {row["id"]: row["is_leader"] for row in told} == {7: False, 8: True}
    assert "host:8 (leader)" in jobq("workers")[1]
