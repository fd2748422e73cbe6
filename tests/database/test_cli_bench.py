"""Tiny runs of every measure of `jobq bench`: that there are numbers, not what they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from jobq import embedded
from jobq_cli.app import run
from jobq_cli.bench import scratch
from jobq_cli.bench.course import DRAINS, NAMES
from jobq_cli.bench.measures import reading, urgent
from jobq_cli.bench.sizes import QUICK
from jobq_cli.commands import bench as command

TINY = replace(
    QUICK, jobs=60, backlog=90, finished=300, future=200, concurrency=20, one=100, many=50, select=60, paced=5,
    interval=0.01, pressure_rate=500, pressure_seconds=0.5, idle_queues=5, idle_seconds=0.3, settle_seconds=0.1,
    memory_first=20, memory_last=60, large=100, small=20, reads=2, slow_jobs=20, slow_seconds=0.05, urgent=1,
)  # fmt: skip
GROUPS = [
    DRAINS[:3], DRAINS[3:], ("latency", "urgent"), ("idle", "memory"), ("enqueue", "bulk", "snapshot", "stats"),
]  # fmt: skip
ELSEWHERE = {"one-core"}  # on the embedded server of a project alone
Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch, admin: psycopg.Connection) -> Iterator[str]:
    """How the databases of this test are named, of which none is left at its end."""
    prefix = f"{scratch.PREFIX}{uuid4().hex[:8]}_"
    monkeypatch.setattr(scratch, "PREFIX", prefix)
    yield prefix
    assert databases(admin, prefix) == []


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, server_url: str, prefix: str) -> Bench:
    """Run `jobq bench` on the server of the tests, with tiny numbers: exit code, stdout, stderr."""
    monkeypatch.setattr(command, "QUICK", TINY)

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["bench", "--quick", "--database-url", server_url, *map(str, arguments)])
        return code, *capsys.readouterr()

    return call


def databases(admin: psycopg.Connection, prefix: str) -> list[str]:
    found = admin.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [prefix])
    return [row[0] for row in found]


def test_every_measure_is_run_here() -> None:
    assert {name for group in GROUPS for name in group} == set(NAMES) - ELSEWHERE


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_each_measure_gives_numbers_on_databases_that_are_dropped(
    names: tuple[str, ...], bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "bench.json"

    code, out, err = bench("--only", ",".join(names), "--json", file)

    assert code == 0, err
    document = json.loads(file.read_text())
    beside = {"drain"} if set(names) & set(DRAINS) else set()  # the usual drain, which the others are compared with
    assert {figure["measure"] for figure in document["figures"]} == set(names) | beside
    assert all(is_whole(figure) for figure in document["figures"])
    assert document["machine"]["cores"] >= 1
    assert document["server"]["fsync"] == "off"
    assert set(document["versions"]) == {"jobq", "SQLAlchemy", "psycopg", "anyio"}
    assert document["sizes"]["jobs"] == TINY.jobs
    assert all(figure["name"] in out for figure in document["figures"])
    assert re.search("wrote [0-9]+ lines of log", out)
    assert document["metrics"] is True
    assert "every worker counted for its metrics port" in out


def is_whole(figure: dict[str, Any]) -> bool:
    """One number of a round, of the usual drain one for each that stands beside it, and their median; 0 of processor
    time that is too short to be told."""
    number = len(figure["samples"])
    return (number == 1 or figure["measure"] == "drain") and figure["value"] == median(figure["samples"]) >= 0


def test_on_the_embedded_server_statements_are_counted_and_a_core_is_shared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_directory: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(embedded, "project_directory", lambda: own_directory)
    file = tmp_path / "bench.json"

    assert run(["bench", "--quick", "--only", "one-core,idle", "--json", str(file)]) == 0, capsys.readouterr().err

    found = {figure["name"]: figure for figure in json.loads(file.read_text())["figures"]}
    assert found["statements, 40 queues"]["value"] > 0
    assert found["statements, 40 queues"]["must"] == 2
    assert found["drained, with the server"]["value"] > 0
    assert embedded.stop(own_directory)


def test_an_urgent_job_that_came_when_nothing_was_claimed_ahead_is_a_measure_missed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(urgent, "QUICK_JOBS", 20)
    monkeypatch.setattr(urgent, "QUICK_SECONDS", 0.05)  # slow, too: a worker claims none ahead
    file = tmp_path / "bench.json"

    code, out, err = bench("--only", "urgent", "--json", file)

    assert code == 0, err
    (ahead, _) = json.loads(file.read_text())["figures"]
    assert (ahead["name"], ahead["value"], ahead["missed"]) == ("slow jobs claimed ahead of it", 0, True)
    assert "missed" in out


def test_a_run_is_compared_with_an_earlier_one(bench: Bench, tmp_path: Path) -> None:
    file, earlier = tmp_path / "bench.json", tmp_path / "earlier.json"
    bench("--only", "stats", "--json", file)
    document = json.loads(file.read_text())
    for figure in document["figures"]:
        figure["value"] /= 1_000
    earlier.write_text(json.dumps(document))

    code, out, _ = bench("--only", "stats", "--against", earlier)

    assert code == 0
    assert out.count("worse") == len(document["figures"]) == 3


def test_when_a_measure_breaks_off_its_database_is_dropped(
    bench: Bench, prefix: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def interrupted(*_: object) -> float:
        seen.extend(databases(admin, prefix))
        raise KeyboardInterrupt

    monkeypatch.setattr(reading, "_reading", interrupted)

    code, out, _ = bench("--only", "stats")

    assert (code, out) == (130, "")
    assert len(seen) == 2  # what it measures in, and what that was made from


def test_a_server_that_makes_no_databases_for_us_is_refused_in_words(
    bench: Bench, admin: psycopg.Connection, server_url: str
) -> None:
    admin.execute("DROP ROLE IF EXISTS benchless")
    admin.execute("CREATE ROLE benchless LOGIN PASSWORD 'p'")
    url = re.sub("//[^@]+@", "//benchless:p@", server_url)

    code, out, err = bench("--database-url", url)

    assert (code, out) == (1, "")
    assert "CREATEDB" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "drain,nonsense"], "no measure nonsense"),
        (["--against", "/nowhere.json"], "cannot be read: No such file"),
        (["--json", "/nowhere/at/all.json"], "no folder"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_measured(
    arguments: list[str], words: str, bench: Bench
) -> None:
    code, out, err = bench(*arguments)

    assert (code, out) == (2, "")
    assert words in err
