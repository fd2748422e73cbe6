"""`jobq health`, as a container's or a monitor's health check calls it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job, add_worker
from sqlalchemy.ext.asyncio import create_async_engine

import jobq as library
from jobq.errors import OptionError, OptionTypeError
from jobq_cli.app import run

pytestmark = pytest.mark.duty("read")

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def health(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `jobq health`: exit code, stdout, stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["health", *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


def failed(text: str) -> list[str]:
    return [line.partition("FAILED: ")[2] for line in text.splitlines() if "FAILED" in line]


def test_all_is_well_with_a_worker_and_nothing_to_do(rows: sa.Connection, health: Call) -> None:
    add_worker(rows, 1)

    code, out, err = health("--max-age", "5m")

    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        [name, "ok"] for name in ("database", "schema", "workers", "age", "served")
    ]


def test_no_worker_or_too_few_is_a_failure(rows: sa.Connection, health: Call) -> None:
    none = health()
    add_worker(rows, 1)
    add_worker(rows, 2, lease_until=NOW - timedelta(seconds=1))
    one, two = health(), health("--min-workers", 2)

    assert (none[0], one[0], two[0], health("--min-workers", 0)[0]) == (1, 0, 1, 0)
    assert failed(none[1]) == ["0 live workers, wanted 1 or more: start one with jobq run module:app"]
    assert failed(two[1]) == ["1 live worker, wanted 2 or more: start one with jobq run module:app"]


def test_a_job_that_waits_too_long_is_a_failure_only_when_that_is_asked_for(rows: sa.Connection, health: Call) -> None:
    add_worker(rows, 1, kinds=["k"])
    add_job(rows, kind="k", run_at=sa.func.now() - timedelta(minutes=6))

    assert health()[0] == 0
    assert health("--max-age", "7m")[0] == 0
    code, out, _ = health("--max-age", "5m")
    assert code == 1
    assert failed(out)[0].startswith("queue default: its oldest due job waits for 6m: see jobq stats")


def test_due_jobs_that_no_worker_has_a_handler_for_are_a_failure(rows: sa.Connection, health: Call) -> None:
    add_worker(rows, 1, kinds=["k"], queues=["other"])
    add_worker(rows, 2, kinds=["k2"])
    add_job(rows, kind="k")
    add_job(rows, kind="later", run_at=sa.func.now() + timedelta(hours=1))

    code, out, _ = health()

    assert code == 1
    assert failed(out) == [
        "queue default: jobs of kind k are due and no live worker of this queue has a handler for it:"
        " start a worker for it, see jobq workers"
    ]


def test_json_has_an_object_for_each_check(rows: sa.Connection, health: Call) -> None:
    code, out, _ = health("--json")

    found = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [(each["check"], each["ok"]) for each in found] == [
        ("database", True), ("schema", True), ("workers", False), ("served", True),
    ]  # fmt: skip
    assert [bool(each["problem"]) for each in found] == [False, False, True, False]


def test_without_the_tables_it_says_what_to_type(empty_database_url: str, health: Call) -> None:
    code, out, err = health("--database-url", empty_database_url)

    assert (code, err) == (1, "")
    assert out.splitlines()[0].split() == ["database", "ok"]
    assert "jobq migrate" in failed(out)[0]


def test_f69_a_server_that_is_away_is_one_line_without_the_password(health: Call) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        code, out, err = health("--database-url", f"postgresql://u:sekret@127.0.0.1:{unused.getsockname()[1]}/d")

    assert (code, out.count("\n")) == (1, 1)
    assert failed(out)[0].startswith("cannot connect to ")
    assert "sekret" not in out + err


def test_a_server_that_accepts_and_says_nothing_is_waited_for_so_long_and_no_longer(health: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://u:sekret@127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=60"
        code, out, _ = health("--timeout", "0.3s", "--database-url", url)

    assert code == 1
    assert failed(out) == ["no answer within 0.3 s: is it reachable, are its tables locked?"]


def test_tables_that_are_locked_are_waited_for_so_long_and_no_longer(
    rows: sa.Connection, engine: sa.Engine, health: Call
) -> None:
    with engine.begin() as other:
        other.exec_driver_sql("LOCK TABLE jobq.jobs IN ACCESS EXCLUSIVE MODE")
        code, out, _ = health("--timeout", "0.5s")

    assert code == 1
    assert len(failed(out)) == 1
    assert "no answer within 0.5 s" in out or "statement timeout" in out
    assert health("--min-workers", 0)[0] == 0


@pytest.mark.parametrize("wrong", ["--min-workers=-1", "--max-age=0s", "--max-age=soon", "--timeout=0s"])
def test_f65_wrong_options_are_wrong_usage(wrong: str, health: Call) -> None:
    assert health(wrong)[0] == 2


def test_the_same_from_python(rows: sa.Connection, engine: sa.Engine) -> None:
    add_worker(rows, 1)
    with engine.connect() as connection:
        well, ill = library.health(connection), library.health(connection, min_workers=2)

    assert (well.is_ok, ill.is_ok) == (True, False)
    assert [check.name for check in ill.checks] == ["schema", "workers", "served"]


@pytest.mark.anyio
async def test_the_same_for_an_async_connection(rows: sa.Connection, database_url: str) -> None:
    add_worker(rows, 1)
    engine = create_async_engine(database_url)
    async with engine.connect() as connection:
        well, ill = await library.health_async(connection), await library.health_async(connection, min_workers=2)
    await engine.dispose()

    assert (well.is_ok, ill.is_ok) == (True, False)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"min_workers": -1}, OptionError), ({"min_workers": "2"}, OptionTypeError), ({"max_age": 5}, OptionTypeError)],
)
def test_f65_wrong_options_are_refused_in_python_too(
    connection: sa.Connection, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        library.health(connection, **options)
