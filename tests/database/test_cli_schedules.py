"""`jobq schedules`, on what workers have published."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import sqlalchemy as sa
from admin_rows import add_worker

import jobq
from jobq.schedule import Step
from jobq.store import scheduling as store
from jobq.store.scheduling import Due
from jobq.tables import jobs, schedules

pytestmark = pytest.mark.duty("operate")

Command: TypeAlias = Callable[..., tuple[int, str, str]]
MINUTE = sa.text("now() + interval '1 minute'")


@pytest.fixture
def command(jobq: Command) -> Command:
    """Run a command line: exit code, stdout, stderr."""
    return jobq


def publish(connection: sa.Connection, schedule: Any, **options: Any) -> jobq.App:
    app = jobq.App()
    handler: Any = app.handler("report")(lambda day=0: None)
    app.schedule(schedule, handler.options(**options), day=3)
    store.publish(connection, app.schedules.values())
    return app


def test_without_schedules_it_says_where_they_come_from(rows: sa.Connection, command: Command) -> None:
    assert command("schedules") == (0, "", "no schedules (workers publish those of their code when they start)\n")
    assert command("schedules", "--json")[1] == ""


def test_a_schedule_is_listed_with_its_next_runs_and_the_fates_of_its_ticks(
    rows: sa.Connection, command: Command
) -> None:
    app = publish(rows, jobq.cron("30 */6 * * *", tz="Asia/Kathmandu", name="nightly"))
    look = store.look(rows, ["nightly"])
    seen = look.standing["nightly"].last_tick
    rows.execute(sa.update(schedules).values(last_tick=seen - timedelta(hours=2)))
    step = Step(seen - timedelta(hours=1), 4, fires=True)
    store.fire(rows, [Due(app.schedules["nightly"], seen - timedelta(hours=2), step)])
    add_worker(rows, 11, schedules=["nightly"], lease_until=MINUTE)

    code, out, err = command("schedules")

    assert (code, err) == (0, "")
    name, what, following, last, ticks = out.splitlines()
    assert name == "nightly (report)"
    assert what == "  At minute 30 past every sixth hour, Asia/Kathmandu, catch_up=once"
    assert following.count(":30 +0545") == 5
    assert last == f"  last  {step.tick:%Y-%m-%d %H:%M:%S} UTC enqueued, 1h ago"
    assert ticks == "  ticks 1 enqueued, 0 skipped, 4 missed"


def test_a_schedule_that_no_live_worker_holds_is_marked(rows: sa.Connection, command: Command) -> None:
    publish(rows, jobq.every(timedelta(hours=24)))
    add_worker(rows, 11, schedules=["report"], lease_until=sa.text("now() - interval '1 second'"))

    out = command("schedules")[1]

    assert out.splitlines()[0] == "report"
    assert "every day, UTC" in out
    assert "last  none yet" in out
    assert "unused: no live worker's code has it" in out


def test_as_json_a_schedule_is_an_object(rows: sa.Connection, command: Command) -> None:
    publish(rows, jobq.every(timedelta(hours=1)))

    (found,) = [json.loads(line) for line in command("schedules", "--json")[1].splitlines()]

    assert (found["name"], found["kind"], found["form"], found["expression"]) == ("report", "report", "every", "3600")
    assert (found["held"], found["last_tick"], found["last_fate"]) == (False, None, None)
    assert (found["enqueued"], found["skipped"], found["missed"]) == (0, 0, 0)
    assert len(found["next_runs"]) == 5


def test_the_next_runs_of_a_predicate_need_the_application(
    rows: sa.Connection, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "predicates_shop.py").write_text(PREDICATES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module: Any = import_module("predicates_shop")
    store.publish(rows, module.app.schedules.values())

    bare, known = command("schedules")[1], command("schedules", "--app", "predicates_shop:app")[1]

    assert "predicate predicates_shop.<lambda>, UTC" in bare
    assert "next  in code alone (see: --app)" in bare
    assert known.count(":07 UTC") == 5


PREDICATES = """
import jobq
app = jobq.App()
@app.when(lambda t: t.minute == 7)
@app.handler("w")
def w() -> None: ...
"""


def test_a_schedule_is_run_now_once(rows: sa.Connection, command: Command) -> None:
    publish(rows, jobq.every(timedelta(hours=24), name="nightly"), queue="mail")

    code, out, _ = command("schedules", "run", "nightly")
    again = command("schedules", "run", "nightly")

    (job,) = rows.execute(sa.select(jobs)).all()
    assert (code, out) == (0, f"enqueued job {job.id}\n")
    assert (job.queue, job.kind, job.args, job.unique_key) == ("mail", "report", {"day": 3}, "schedule:nightly")
    refused = f"error: nothing enqueued: job {job.id} of this schedule waits or runs (see: jobq show {job.id})\n"
    assert again == (1, "", refused)


def test_run_as_json_gives_the_job(rows: sa.Connection, command: Command) -> None:
    publish(rows, jobq.every(timedelta(hours=24), name="nightly"))

    found = json.loads(command("schedules", "run", "nightly", "--json")[1])

    assert (found["id"], found["created"]) == (rows.execute(sa.select(jobs.c.id)).scalar_one(), True)


def test_a_schedule_that_is_not_there_cannot_be_run(rows: sa.Connection, command: Command) -> None:
    code, out, err = command("schedules", "run", "nightly")

    assert (code, out) == (1, "")
    assert err.startswith("error: no schedule 'nightly': workers publish those of their code")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["schedules"], ["schedules", "run", "x"]])
def test_without_the_tables_it_says_what_to_type(
    arguments: list[str], empty_database_url: str, command: Command
) -> None:
    code, out, err = command("--database-url", empty_database_url, *arguments)

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "jobq migrate" in err


@pytest.mark.parametrize("arguments", [["schedules", "--help"], ["schedules", "run", "--help"]])
def test_its_help_has_an_example(arguments: list[str], command: Command) -> None:
    code, out, _ = command(*arguments)

    assert code == 0
    assert "jobq schedules run nightly-report" in out
