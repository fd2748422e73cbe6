"""The filters that list, retry and cancel share, and what is said of a change of many jobs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job, everything

from jobq.refusals import Repaired
from jobq_cli.app import run
from jobq_cli.audit import who

pytestmark = pytest.mark.duty("operate")

HOUR = timedelta(hours=1)
HOSTILE = ["x'; DROP TABLE jobq.jobs; --", '"; LISTEN y; --', "%s %(a)s {0}", "}", "{a,b}", '"', "\\", "a%_b", "NULL"]


@pytest.fixture
def ids(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[int]]:
    """What `jobq list` finds."""

    def call(*options: object) -> list[int]:
        assert run(["list", "--json", *map(str, options)]) == 0
        return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]

    return call


def test_jobs_are_chosen_by_their_age_since_the_end_or_else_the_enqueue(
    rows: sa.Connection, ids: Callable[..., list[int]]
) -> None:
    old, new = add_job(rows, created_at=NOW - 2 * HOUR), add_job(rows)
    long_dead = add_ended(rows, created_at=NOW - 9 * HOUR, finished_at=NOW - 2 * HOUR)
    just_dead = add_ended(rows, created_at=NOW - 9 * HOUR, finished_at=NOW)

    assert ids("--older", "1h") == [long_dead, old]
    assert ids("--newer", "1h30m") == [just_dead, new]
    assert ids("--state", "dead", "--older", "90s") == [long_dead]
    assert ids("--state", "pending", "--newer", "1h") == [new]
    assert ids("--older", "1h", "--newer", "90m") == []


@pytest.mark.parametrize(
    ("asked", "args"),
    [
        ("company_id=7", {"company_id": 7}),
        ("company_id=7.0", {"company_id": 7}),
        ('company_id="7"', {"company_id": "7"}),
        ("to=a@b.c", {"to": "a@b.c"}),
        ("to=a=b", {"to": "a=b"}),
        ("tenant.id=3", {"tenant": {"id": 3, "name": "x"}}),
        ("items.1.sku=b", {"items": [{"sku": "a"}, {"sku": "b"}]}),
        ('tenant={"id": 3}', {"tenant": {"id": 3}}),
        ("a.b=1", {"a.b": 1}),
        ("on=true", {"on": True}),
        ("on=null", {"on": None}),
        ("on=", {"on": ""}),
        ("x=NaN", {"x": "NaN"}),
        ("name=Zoë", {"name": "Zoë"}),
        ("n=12345678901234567890.123456789", {"n": sa.literal_column("12345678901234567890.123456789")}),
    ],
)
def test_jobs_are_chosen_by_an_argument(
    rows: sa.Connection, ids: Callable[..., list[int]], asked: str, args: dict[str, object]
) -> None:
    stored = sa.func.jsonb_build_object(*[part for pair in args.items() for part in pair]) if "n" in args else args
    wanted = add_job(rows, args=stored)
    add_job(rows, args={"company_id": 8, "tenant": 3, "on": False, "to": "7"})

    assert ids("--arg", asked) == [wanted]


def test_several_arguments_have_to_fit_all(rows: sa.Connection, ids: Callable[..., list[int]]) -> None:
    both = add_job(rows, args={"a": 1, "b": 2})
    add_job(rows, args={"a": 1})

    assert ids("--arg", "a=1", "--arg", "b=2") == [both]


def test_jobs_are_chosen_by_their_last_error_or_outcome(rows: sa.Connection, ids: Callable[..., list[int]]) -> None:
    errors = [{"error": "ValueError", "message": "first"}, {"error": "httpx.ReadTimeout", "message": "100% slow"}]
    retried = add_job(rows, errors=errors)
    dead = add_ended(rows, outcome="err: TimeoutError: took longer")
    add_job(rows, errors={"odd": 1})

    assert ids("--error", "timeout") == [dead, retried]
    assert ids("--error", "100%") == ids("--error", "readtimeout: 100") == [retried]
    assert ids("--error", "first") == ids("--error", "%")[1:] == []
    assert ids("--state", "dead", "--error", "TIMEOUT") == [dead]


def test_the_oldest_may_come_first(rows: sa.Connection, ids: Callable[..., list[int]]) -> None:
    first, second, third = (add_job(rows) for _ in range(3))

    assert ids("--order", "oldest", "--limit", 2) == [first, second]
    assert ids("--order", "newest", "--limit", 2) == [third, second]


@pytest.mark.parametrize("text", HOSTILE)
def test_f67_what_filters_look_for_is_data(rows: sa.Connection, ids: Callable[..., list[int]], text: str) -> None:
    by_value, by_name = add_job(rows, args={"a": text}), add_job(rows, args={text: 1})
    by_error = add_job(rows, errors=[{"error": text, "message": ""}])

    assert ids("--arg", f"a={json.dumps(text)}") == [by_value]
    assert ids("--arg", f"{text}=1") == [by_name]
    assert ids("--error", text) == [by_error]


@pytest.mark.parametrize(
    "line",
    [
        "list --order due", "list --order ;drop", "list --older 5", "list --newer -1h", "retry --older 0s",
        "list --arg a", "list --arg =1", 'list --arg a="\\u0000"', "list --arg a\udcff=1", "list --arg a=1e999",
        "list --error \udcff",
    ],
)  # fmt: skip
def test_f65_a_filter_that_cannot_be_meant_is_exit_code_2(
    rows: sa.Connection, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    code = run(line.split(" "))

    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_repairs_take_the_same_filters(rows: sa.Connection, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = add_ended(rows, args={"company_id": 7}, outcome="err: TimeoutError: no", finished_at=NOW)
    add_ended(rows, args={"company_id": 8}, outcome="err: TimeoutError: no", finished_at=NOW)
    waits = add_job(rows, queue="email", created_at=NOW - 2 * HOUR)
    add_job(rows, queue="email")
    before = everything(rows)
    chosen = ["--arg", "company_id=7", "--error", "timeout", "--newer", "1h"]

    assert run(["retry", *chosen, "--dry-run"]) == 0
    assert everything(rows) == before
    assert run(["retry", *chosen, "--yes"]) == 0
    assert run(["cancel", "--queue", "email", "--older", "1h", "--yes", "--json"]) == 0

    counted, retried, cancelled = capsys.readouterr().out.splitlines()
    assert (counted, retried) == ("would retry 1", "retried 1 of 1")
    assert json.loads(cancelled) == {"matched": 1, "cancelled": 1, "dry_run": False}
    states = {row.id: row.state for row in rows.exec_driver_sql("SELECT id, state FROM jobq.all_jobs")}
    assert (states[wanted], states[waits]) == ("pending", "cancelled")


def test_a_change_of_many_jobs_leaves_a_line_in_the_log(
    rows: sa.Connection, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobq.audit")
    for _ in range(3):
        add_ended(rows, queue="email", args={"n": 1})
    held = add_ended(rows, queue="email", args={"n": 1}, unique_key="k")
    add_job(rows, unique_key="k")

    for options in (["--dry-run"], ["--yes"], ["--kind", "none", "--yes"]):
        assert run(["retry", "--queue", "email", "--older", "0.001s", "--arg", "n=1", *options]) == 0

    (record,) = [record for record in caplog.records if record.name == "jobq.audit"]
    said = f"{who()} retried 3 of 4 jobs: state dead, queue email, older 1ms, arg n=1"
    assert record.getMessage() == said
    assert (vars(record)["changed"], vars(record)["matched"]) == (3, 4)
    assert f"left as it is: job {held}" in capsys.readouterr().err


def test_a_change_that_is_interrupted_says_in_the_log_how_far_it_came(
    rows: sa.Connection, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO, "jobq.audit")
    for _ in range(3):
        add_ended(rows)

    def interrupted(*_: object, **__: object) -> Iterator[Repaired]:
        yield Repaired((1,))
        raise KeyboardInterrupt

    monkeypatch.setattr("jobq.bulk.in_chunks", interrupted)

    assert run(["retry", "--state", "dead", "--yes"]) == 130
    assert [record.getMessage() for record in caplog.records if record.name == "jobq.audit"] == [
        f"{who()} retried 1 of 3 jobs: state dead"
    ]
    assert capsys.readouterr().out == ""


def test_a_listing_that_takes_too_long_says_what_to_do(
    rows: sa.Connection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.exec_driver_sql("INSERT INTO jobq.jobs (queue, kind) SELECT 'q', 'k' FROM generate_series(1, 50000)")
    monkeypatch.setattr("jobq_cli.commands.list.PATIENCE", timedelta(milliseconds=1))

    code = run(["list", "--error", "nothing has this"])

    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "look for less with --state, --queue, --kind or --newer" in err
