from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, add_worker, everything

pytestmark = pytest.mark.duty("operate")

FULL = Path("/dev/full")
ERROR = {
    "attempt": 1, "at": "2026-01-02T03:04:05+00:00", "worker": "host:7", "error": "shop.CardDeclined",
    "message": "no \x1b[31m", "traceback": "Traceback (most recent call last):\n  in charge\n",
}  # fmt: skip


def objects(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("command", ["stats", "list", "show 1", "why 1", "retry 1", "cancel 1", "workers"])
def test_without_the_tables_every_command_says_what_to_type(
    command: str, empty_database_url: str, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = jobq("--database-url", empty_database_url, *command.split())

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "jobq migrate" in err


def test_migrate_creates_the_tables_and_may_be_run_again(
    empty_database_url: str, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    url = "--database-url", empty_database_url

    first, second, counted = jobq(*url, "migrate"), jobq(*url, "migrate"), jobq(*url, "stats")

    assert (first[0], second[0], counted[0]) == (0, 0, 0)
    assert "already" not in first[1]
    assert "already" in second[1]


def test_migrate_can_print_its_sql_without_a_database(
    jobq: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", "postgresql://127.0.0.1:1/none")

    code, out, _ = jobq("migrate", "--sql")

    assert code == 0
    assert "CREATE TABLE" in out


def test_f64_stats_of_nothing_are_zeros(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = jobq("stats")
    (found,) = objects(jobq("stats", "--json")[1])

    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "0 pending, 0 running, 0 done, 0 dead, 0 cancelled"
    assert "oldest due job -" in out
    assert found["oldest_due_seconds"] is None


def test_stats_show_queues_and_what_keeps_jobs_waiting(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    add_job(rows, queue="email")
    add_ended(rows, "done", attempted_at=NOW)

    code, out, _ = jobq("stats")
    (found,) = objects(jobq("stats", "--json")[1])

    assert code == 0
    assert "1 job waits for kind email.send, which no live worker knows" in out
    assert [line.split()[0] for line in out.splitlines() if line][2:5] == ["queue", "default", "email"]
    assert [(queue["queue"], queue["ready"], queue["done"]) for queue in found["queues"]] == [  # type: ignore[attr-defined]
        ("default", 0, 1),
        ("email", 1, 0),
    ]


def test_list_chooses_by_state_queue_and_kind(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    waits = add_job(rows, queue="email")
    runs = add_job(rows, worker_id=7, attempted_at=NOW)
    dead = add_ended(rows, "dead", kind="report", outcome="err: \x1bred")
    done = add_ended(rows, "done")

    def ids(*options: object) -> list[object]:
        return [each["id"] for each in objects(jobq("list", "--json", *options)[1])]

    assert ids() == [done, dead, runs, waits]
    assert ids("--state", "dead") == ids("--kind", "report") == [dead]
    assert ids("--state", "dead", "--state", "running") == [dead, runs]
    assert ids("--queue", "email") == ids("--state", "pending") == [waits]
    assert ids("--limit", 1) == [done]
    assert "err: \\x1bred" in jobq("list")[1]


def test_f65_a_queue_that_nobody_knows_is_an_empty_list_and_a_note(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    add_job(rows, queue="email")

    assert jobq("list", "--queue", "emial") == (0, "", "no queue 'emial': known are email\n")
    assert jobq("list", "--queue", "email", "--state", "dead") == (0, "", "no such jobs\n")


def test_f69_a_listing_does_not_show_args(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    shown = add_job(rows, args={"to": "hunter2"})

    assert "hunter2" not in jobq("list")[1] + jobq("list", "--json")[1]
    assert "hunter2" in jobq("show", shown)[1]


def test_show_tells_the_whole_story(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    dead = add_ended(rows, args={"to": "a@b.c"}, errors=[ERROR], attempted_at=NOW, callsite="shop/orders.py:88")

    code, out, err = jobq("show", dead)
    (found,) = objects(jobq("show", dead, "--json")[1])

    assert (code, err) == (0, "")
    for words in (
        '{"to": "a@b.c"}',
        "shop/orders.py:88",
        "attempt 1 failed: shop.CardDeclined",
        "on host:7",
        "in charge",
    ):
        assert words in out
    assert "\x1b" not in out
    assert (found["args"], found["state"]) == ({"to": "a@b.c"}, "dead")
    assert [failure["traceback"] for failure in found["errors"]] == [ERROR["traceback"]]  # type: ignore[attr-defined]


def test_show_says_what_a_waiting_job_waits_for_and_what_became_of_its_attempts(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    at, later = NOW - timedelta(minutes=3), NOW + timedelta(hours=1)
    error = sa.func.jsonb_build_array(
        sa.func.jsonb_build_object("attempt", 3, "at", sa.func.to_json(NOW), "error", "E")
    )
    values = {"attempt": 3, "failures": 1, "max_attempts": 5, "attempted_at": at, "run_at": later}
    waits = add_job(rows, callsite="shop/orders.py:88", errors=error, **values)

    out = jobq("show", waits)[1]

    assert f"why         job {waits} waits: there is no live worker" in out
    assert "claimed 3 times, 1 of 5 failed, 2 put off (Snooze, a pause) or given back" in out
    assert "enqueued at shop/orders.py:88" in out
    assert "attempt 3 failed: E, after 3m" in out
    assert "due (in 1h)" in out


def test_show_has_the_args_that_python_cannot_parse_as_they_stand(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    huge = sa.cast(sa.cast('{"n": ' + "9" * 5000 + "}", sa.Text), sa.dialects.postgresql.JSONB)  # type: ignore[attr-defined]
    odd = add_job(rows, args=huge)

    code, out, _ = jobq("show", odd)
    (found,) = objects(jobq("show", odd, "--json")[1])

    assert (code, out.count("9" * 5000)) == (0, 1)
    assert found["args"] is None
    assert str(found["args_text"]).count("9") == 5000


@pytest.mark.parametrize("command", ["show", "retry", "cancel"])
def test_f66_an_unknown_id_is_one_line_and_exit_code_1(
    command: str, rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = jobq(command, 42)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no job 42" in err


def test_f18_a_dead_job_is_retried_and_a_pending_one_is_not(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    dead = add_ended(rows, errors=[ERROR])

    assert jobq("retry", dead) == (0, f"retried {dead}\n", "")
    assert "shop.CardDeclined" in jobq("show", dead)[1]
    code, out, err = jobq("retry", dead)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"job {dead} is pending" in err


def test_f09_a_retry_whose_key_is_taken_is_one_line_that_names_the_holder(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    dead = add_ended(rows, unique_key="k")
    holder = add_job(rows, unique_key="k")
    before = everything(rows)

    code, out, err = jobq("retry", dead)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"job {holder}" in err
    assert everything(rows) == before


def test_f28_cancel_refuses_what_runs_or_has_ended(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]
) -> None:
    waits, runs, done = add_job(rows), add_job(rows, worker_id=7), add_ended(rows, "done")

    assert jobq("cancel", waits)[:2] == (0, f"cancelled {waits}\n")
    assert jobq("cancel", runs)[0] == 1
    assert "done, ok" in jobq("cancel", done)[2]
    code, out, _ = jobq("cancel", runs, done, "--running", "--json")
    assert code == 1
    assert [(each["id"], each["cancelled"]) for each in objects(out)] == [(runs, True), (done, False)]


def test_in_bulk_jobs_are_counted_first(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    for _ in range(3):
        add_ended(rows, queue="email")
    add_ended(rows, "done", queue="email")
    before = everything(rows)

    assert jobq("retry", "--queue", "email", "--dry-run")[:2] == (0, "would retry 3\n")
    assert everything(rows) == before
    assert jobq("retry", "--queue", "email", "--yes")[:2] == (0, "retried 3 of 3\n")
    assert objects(jobq("cancel", "--queue", "email", "--yes", "--json")[1]) == [
        {"matched": 3, "cancelled": 3, "dry_run": False}
    ]
    assert jobq("retry", "--state", "dead", "--yes")[:2] == (0, "retried 0 of 0\n")


def test_in_bulk_nothing_is_changed_without_a_yes(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    add_ended(rows)
    before = everything(rows)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        code, out, err = jobq("retry", "--state", "dead")

    assert (code, out) == (2, "")
    assert "--yes" in err
    assert everything(rows) == before


def test_workers_are_listed(rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]]) -> None:
    assert jobq("workers")[:2] == (0, "")
    add_worker(rows, 7)
    add_job(rows, worker_id=7)

    code, out, _ = jobq("workers")
    (found,) = objects(jobq("workers", "--json")[1])

    assert (code, len(out.splitlines())) == (0, 2)
    assert (found["id"], found["name"], found["running"], found["alive"]) == (7, "host:7", 1, True)


def test_a_role_without_rights_is_told_so_in_one_line(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], database_url: str
) -> None:
    role = f"weak_{os.getpid()}"
    rows.exec_driver_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'sekret'")
    try:
        url = sa.make_url(database_url).set(username=role, password="sekret").render_as_string(hide_password=False)
        code, out, err = jobq("stats", "--database-url", url)
        rows.exec_driver_sql(f"GRANT USAGE ON SCHEMA jobq TO {role}")
        rows.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA jobq TO {role}")
        add_ended(rows)
        refused = jobq("retry", "--state", "dead", "--yes", "--database-url", url)
    finally:
        rows.exec_driver_sql(f"DROP OWNED BY {role}")
        rows.exec_driver_sql(f"DROP ROLE {role}")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert (refused[0], refused[1], refused[2].count("\n")) == (1, "", 1)
    assert "permission denied" in refused[2]
    assert "sekret" not in err + refused[2]


def test_a_wrong_password_is_one_line_without_it(
    rows: sa.Connection, jobq: Callable[..., tuple[int, str, str]], database_url: str
) -> None:
    url = sa.make_url(database_url).set(password="sekret").render_as_string(hide_password=False)

    code, out, err = jobq("stats", "--database-url", url)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "sekret" not in err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_f68_a_reader_that_goes_away_is_met_quietly(rows: sa.Connection, unbuffered: str) -> None:
    rows.exec_driver_sql("INSERT INTO jobq.jobs (queue, kind) SELECT 'q', 'k' FROM generate_series(1, 20000)")
    command = [sys.executable, "-m", "jobq", "list", "--limit", "20000"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert first.split()[:3] == ["id", "state", "queue"]
    assert (process.returncode, said) == (141, "")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device on this system")
@pytest.mark.parametrize("command", ["stats", "list --limit 20000 --json", "--help"])
def test_f68_a_full_device_is_one_line_and_a_failure(rows: sa.Connection, command: str) -> None:
    rows.exec_driver_sql("INSERT INTO jobq.jobs (queue, kind) SELECT 'q', 'k' FROM generate_series(1, 2000)")

    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jobq", *command.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot write the output" in done.stderr
