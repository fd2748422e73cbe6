"""What a signal does to `jobq run` at any moment of its life, also as process 1 of a container."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import psutil
import pytest
import sqlalchemy as sa
from run_process import RunProcess

import jobq

APP = """
import asyncio, logging, os, subprocess, time
import jobq
import psutil

app = jobq.App()
logger = logging.getLogger("shop")

@app.handler("job.long")
async def long() -> None:
    logger.info("begun as %d", os.getpid())
    await asyncio.sleep(60)

@app.handler("job.to_thread")
async def to_thread() -> None:
    logger.info("begun")
    await asyncio.to_thread(time.sleep, 60)

@app.handler("job.program")
async def program() -> None:
    done = await asyncio.create_subprocess_exec("true")
    assert await done.wait() == 0
    assert subprocess.run(["true"]).returncode == 0
    logger.info("children: %s", [child.status() for child in psutil.Process().children()])
"""
HANGING = """
import asyncio
import jobq

app = jobq.App()

@app.handler("job.none")
async def none() -> None: ...

@app.lifespan
async def clients():
    yield
    await asyncio.Event().wait()
"""
SLOW_IMPORT = """
import sys, threading, time
print("importing", file=sys.stderr, flush=True)
threading.Event().wait(60)
"""
IN_A_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
Run = Callable[..., RunProcess]


class AsProcessOne(RunProcess):
    """`jobq run` as process 1 of a namespace of its own, as in a container; signals come from outside."""

    prefix = tuple(IN_A_NAMESPACE)

    def signal(self, number: Signals) -> None:
        (inner,) = psutil.Process(self.process.pid).children()
        inner.send_signal(number)


def can_have_namespaces() -> bool:
    """As root on Linux; elsewhere a signal does the same to a process that is not the first."""
    try:
        return subprocess.run([*IN_A_NAMESPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


FIRST = AsProcessOne if can_have_namespaces() else RunProcess


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "slow.py").write_text(SLOW_IMPORT)
    (tmp_path / "hanging.py").write_text(HANGING)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Run]:
    """Start `jobq run`; whatever happens, it does not outlive the test."""
    processes: list[RunProcess] = []

    def start(kind: type[RunProcess], *arguments: str, database_url: str | None = None) -> RunProcess:
        processes.append(kind(folder, *arguments, database_url=database_url))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


@pytest.mark.parametrize("kind", [RunProcess, FIRST], ids=["plain", "process 1"])
@pytest.mark.parametrize(("number", "code"), [(SIGTERM, 143), (SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_f32_a_signal_while_the_application_is_imported_ends_it_at_once(
    kind: type[RunProcess], number: Signals, code: int, start: Run, database_url: str
) -> None:
    process = start(kind, "slow:app", database_url=database_url)
    process.until("importing")

    process.signal(number)

    assert process.ends_within(20) == code
    assert process.lines == ["importing"]


def test_f32_as_process_1_it_gives_back_what_runs_and_ends_with_0(
    start: Run, engine: sa.Engine, database_url: str
) -> None:
    with engine.begin() as connection:
        job_id = jobq.enqueue(connection, jobq.kind("job.long", queue="default")).id
    process = start(FIRST, "shop:app", "--grace=0.1", database_url=database_url)
    begun = process.until("begun as")

    process.signal(SIGTERM)

    assert process.ends_within(20) == 0
    assert begun.endswith("begun as 1") == (FIRST is AsProcessOne)
    assert_given_back(engine, job_id)


def test_f32_as_process_1_a_second_signal_ends_it_with_143(start: Run, engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        job_id = jobq.enqueue(connection, jobq.kind("job.long", queue="default")).id
    process = start(FIRST, "shop:app", database_url=database_url)
    process.until("begun as")

    process.signal(SIGTERM)
    process.until("no more claims")
    process.signal(SIGTERM)

    assert process.ends_within(20) == 143
    assert_given_back(engine, job_id)


def test_f32_as_process_1_it_leaves_no_zombies_of_its_own_children(
    start: Run, engine: sa.Engine, database_url: str
) -> None:
    with engine.begin() as connection:
        jobq.enqueue(connection, jobq.kind("job.program", queue="default"))
    process = start(FIRST, "shop:app", database_url=database_url)
    children = process.until("children:")
    process.signal(SIGTERM)

    assert process.end() == 0
    assert children.endswith("children: []")


def test_f31_a_thread_that_a_handler_started_does_not_keep_the_process(
    start: Run, engine: sa.Engine, database_url: str
) -> None:
    with engine.begin() as connection:
        job_id = jobq.enqueue(connection, jobq.kind("job.to_thread", queue="default")).id
    process = start(RunProcess, "shop:app", "--grace=0.1", database_url=database_url)
    process.until("begun")

    process.signal(SIGTERM)

    assert process.ends_within(30) == 70
    assert any("left behind, still running" in line and "asyncio_0" in line for line in process.lines)
    assert_given_back(engine, job_id)


def test_a_lifespan_that_hangs_is_cut_off_after_a_second_signal(start: Run, database_url: str) -> None:
    process = start(RunProcess, "hanging:app", database_url=database_url)
    process.until("is at work as")

    process.signal(SIGTERM)
    process.until("worker left")
    process.signal(SIGTERM)

    assert process.ends_within(30) == 70
    assert process.lines[-1].endswith("left behind, still running: the main thread")


def test_sigterm_ends_any_command_while_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(SLOW_IMPORT)
    command = [sys.executable, "-m", "jobq", "stats"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "importing\n"
        process.send_signal(SIGTERM)

        assert process.wait(30) == 143
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def assert_given_back(engine: sa.Engine, job_id: int) -> None:
    with engine.connect() as connection:
        job = jobq.get(connection, job_id)
    assert job is not None
    assert (job.state, job.failures, job.worker_id) == (jobq.State.PENDING, 0, None)
