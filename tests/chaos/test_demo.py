from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

from jobq import embedded

JOBQ = [sys.executable, "-m", "jobq"]
UNDER_A_MINUTE = 59
COUNTS = {
    "jobs": "SELECT count(*) FROM jobq.all_jobs",
    "done": "SELECT count(*) FROM jobq.finished_jobs WHERE state = 'done'",
    "dead": "SELECT count(*) FROM jobq.finished_jobs WHERE state = 'dead'",
    "open": "SELECT count(*) FROM jobq.jobs",
    "orders": "SELECT count(*) FROM shop.orders",
    "receipts": "SELECT count(*) FROM shop.receipts",
    "orders_with_one_receipt": "SELECT count(DISTINCT order_id) FROM shop.receipts",
    "thumbnails": "SELECT count(DISTINCT product) FROM shop.thumbnails",
    "thumbnail_jobs": "SELECT count(*) FROM jobq.all_jobs WHERE kind = 'thumbnail.make'",
    "wishes": "SELECT count(*) FROM shop.reindexings",
    "refused": "SELECT count(*) - count(DISTINCT job_id) FROM shop.reindexings",
    "index_jobs": "SELECT count(*) FROM jobq.all_jobs WHERE kind = 'search.index'",
    "scheduled": "SELECT count(*) FROM jobq.all_jobs WHERE kind = 'reminder.send'",
    "started_early": "SELECT count(*) FROM jobq.all_jobs WHERE kind = 'reminder.send' AND attempted_at < run_at",
    "failed_attempts": "SELECT count(*) FROM jobq.all_jobs, jsonb_array_elements(errors)",
    "done_after_failures": "SELECT count(*) FROM jobq.finished_jobs WHERE state = 'done' AND failures > 0",
    "rolled_back_found": "SELECT count(*) FROM jobq.all_jobs JOIN shop.declined ON job_id = all_jobs.id",
}
IDS = {
    "rolled_back_jobs": "SELECT job_id FROM shop.declined",
    "dead_jobs": "SELECT id FROM jobq.finished_jobs WHERE kind = 'feed.import'",
    "held_when_killed": "SELECT unnest(job_ids) FROM shop.killed",
    "rescued": """SELECT id FROM jobq.all_jobs WHERE errors @> '[{"error": "WorkerLost"}]' ORDER BY id""",
    "rescued_done": """SELECT id FROM jobq.finished_jobs WHERE state = 'done' AND errors @> '[{"error": "WorkerLost"}]'
                       ORDER BY id""",
}


class Demo:
    """Runs of the demo in a folder of their own, with a server of their own."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "XDG_DATA_HOME": str(data), "COLUMNS": "80"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._call([*JOBQ, "demo", *arguments])

    def start(self) -> subprocess.Popen[str]:
        """A demo on its way: it has just killed a worker."""
        process = subprocess.Popen(
            [*JOBQ, "demo", "--jobs=40"],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert any("killed with SIGKILL" in line for line in process.stdout)
        return process

    def shell(self, lines: list[str]) -> str:
        return self._call(["sh", "-e", "-c", "\n".join(lines)]).stdout

    def works_off(self, setting: str, run: str, *, kind: str) -> bool:
        """Whether the worker of this command line takes a job of that kind."""
        process = subprocess.Popen(
            ["sh", "-c", f"{setting}\nexec {run}"],
            cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        found = any(f"stock {kind}" in line for line in process.stderr)
        process.terminate()
        process.communicate(timeout=30)
        return found

    def workers(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_ours = process.environ().get("XDG_DATA_HOME") == self.environment["XDG_DATA_HOME"]
                found += [process] if is_ours and "jobq_cli.demo.shop:app" in process.cmdline() else []
        return found

    def _call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        called = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=UNDER_A_MINUTE
        )
        assert called.returncode == 0, called.stderr + called.stdout
        return called


@pytest.fixture
def demo(tmp_path: Path, own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Demo]:
    (tmp_path / "pyproject.toml").touch()
    yield Demo(tmp_path, own_directory)
    monkeypatch.setenv("XDG_DATA_HOME", str(own_directory))
    monkeypatch.chdir(tmp_path)
    embedded.stop(embedded.project_directory())


@pytest.mark.parametrize(("jobs", "seed"), [(40, 3), (120, 8)])
def test_the_numbers_of_the_demo_are_those_of_the_database(jobs: int, seed: int, demo: Demo) -> None:
    summary = json.loads(demo.run(f"--jobs={jobs}", f"--seed={seed}", "--json").stdout)

    database_url = demo.shell([summary["commands"][0], 'echo "$DEMO"']).strip()
    engine = sa.create_engine(database_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        counted = {name: connection.scalar(sa.text(count)) for name, count in COUNTS.items()}
        listed = {name: list(connection.scalars(sa.text(ids))) for name, ids in IDS.items()}
    assert {name: summary[name] for name in counted} == counted
    assert {name: summary[name] for name in listed} == listed
    assert (counted["jobs"], counted["done"], counted["dead"]) == (jobs, jobs - 1, 1)
    assert counted["orders"] == counted["receipts"] == counted["orders_with_one_receipt"] > 0
    assert (counted["rolled_back_found"], counted["started_early"]) == (0, 0)
    assert listed["held_when_killed"] == listed["rescued"] != []
    assert listed["rescued_done"] == [each for each in listed["rescued"] if each not in listed["dead_jobs"]]
    assert demo.workers() == []


def test_the_demo_tells_what_it_does_and_its_last_commands_work(demo: Demo) -> None:
    said = demo.run("--jobs=40").stdout

    story, _, rest = said.partition("What the database says:")
    assert "killed with SIGKILL; it held" in story
    assert "was rolled back, and job" in story
    sentences, _, further = rest.partition("Look further")
    assert [line[:2] for line in sentences.strip().splitlines()] == ["ok"] * 9
    commands = [line.strip() for line in further.splitlines()[1:]]
    *looks, run, stop = commands
    answers = demo.shell(looks)
    assert "39 done, 1 dead" in answers
    assert "job 11 is dead" in answers
    assert "retried 11" in answers
    assert demo.works_off(commands[0], run, kind="feed.import")
    assert "stopped the PostgreSQL" in demo.shell([stop])


def test_the_demo_draws_a_picture_that_loads_nothing(demo: Demo) -> None:
    demo.run("--jobs=20", "--svg=picture.svg")

    picture = (demo.folder / "picture.svg").read_text()
    assert "jobq&#160;demo" in picture
    assert "What&#160;the&#160;database&#160;says" in picture
    assert "font-face" not in picture


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_an_interrupted_demo_leaves_no_worker_behind(number: signal.Signals, code: int, demo: Demo) -> None:
    process = demo.start()
    workers = demo.workers()
    assert workers

    process.send_signal(number)
    said, _ = process.communicate(timeout=30)

    assert process.returncode == code
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


def test_a_second_demo_in_the_same_folder_is_refused(demo: Demo) -> None:
    process = demo.start()

    second: Any = subprocess.run(
        [*JOBQ, "demo"], cwd=demo.folder, env=demo.environment, capture_output=True, text=True, timeout=30
    )

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert second.returncode == 1
    assert second.stderr == "error: another demo is running in this folder: wait for its end\n"
