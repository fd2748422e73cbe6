"""The ports of a real `jobq run`."""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from run_process import APP, RunProcess

import jobq

Run = Callable[..., RunProcess]
opened = build_opener(ProxyHandler({})).open  # whatever proxy the environment names


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start `jobq run`; whatever happens, it does not outlive the test."""
    (tmp_path / "shop.py").write_text(APP)
    processes: list[RunProcess] = []

    def start(*arguments: str, database_url: str | None = None) -> RunProcess:
        processes.append(RunProcess(tmp_path, "shop:app", *arguments, database_url=database_url))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def port_of(process: RunProcess, path: str) -> int:
    found = re.search(r"port (\d+)$", process.until(f"answers {path}"))
    assert found is not None
    return int(found[1])


def get(port: int, path: str) -> tuple[int, str]:
    """Status and text."""
    try:
        with opened(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_a_worker_answers_probes_and_metrics(run: Run, database_url: str, engine: sa.Engine) -> None:
    process = run("--health-port=0", "--metrics-port=0", database_url=database_url)
    health, metrics = port_of(process, "/healthz, /readyz"), port_of(process, "/metrics")
    process.until("is at work as")
    with engine.begin() as connection:
        jobq.enqueue(connection, jobq.kind("job.quick", queue="fast"), text="hello")
    process.until("fast job.quick")

    assert get(health, "/healthz") == get(health, "/readyz") == (200, "ok\n")
    assert (get(health, "/metrics")[0], get(metrics, "/healthz")[0]) == (404, 404)


def test_one_port_serves_both_and_the_counters_are_there_over_http(
    run: Run, database_url: str, engine: sa.Engine
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = run(f"--health-port={port}", f"--metrics-port={port}", database_url=database_url)
    assert port_of(process, "/healthz, /readyz, /metrics on 127.0.0.1") == port
    process.until("is at work as")
    with engine.begin() as connection:
        jobq.enqueue(connection, jobq.kind("job.quick", queue="fast"), text="hello")
    process.until("fast job.quick")

    status, text = get(port, "/metrics")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert status == 200
    assert samples["jobq_finished_total", ("kind", "job.quick"), ("outcome", "ok"), ("queue", "fast")] == 1
    assert samples["jobq_up",] == samples["jobq_workers",] == samples["jobq_ready",] == 1
    assert "process_cpu_seconds_total" in text
    assert get(port, "/readyz")[0] == 200
    process.signal(signal.SIGTERM)
    assert process.end() == 0


def test_while_the_database_is_away_the_process_is_alive_and_not_ready(run: Run) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"postgresql://u:sekret@127.0.0.1:{unused.getsockname()[1]}/d"
        process = run("--health-port=0", "--metrics-port=0", database_url=url)
        health, metrics = port_of(process, "/healthz"), port_of(process, "/metrics")
        process.until("the database cannot be used")

        assert get(health, "/healthz") == (200, "ok\n")
        status, said = get(health, "/readyz")
        assert (status, said.splitlines()[0][:39]) == (503, "FAILED: the worker is not registered: i")
        assert "\njobq_up 0.0\n" in get(metrics, "/metrics")[1]
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    assert "sekret" not in "".join(process.lines)


def test_a_port_that_is_taken_ends_it_in_one_line(run: Run, database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = run(f"--health-port={taken.getsockname()[1]}", "--log-level=error", database_url=database_url)

        assert process.end() == 1
    (line,) = process.lines
    assert line.startswith("error: cannot listen on 127.0.0.1 port ")


@pytest.mark.parametrize("wrong", ["--health-port=-1", "--metrics-port=65536", "--health-port=http"])
def test_f65_a_wrong_port_is_refused_before_anything_runs(wrong: str, run: Run) -> None:
    assert run(wrong).end() == 2


def test_without_the_package_the_metrics_port_says_what_to_install(
    run: Run, tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['prometheus_client'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "hidden"))

    process = run("--metrics-port=0", "--log-level=error", database_url=database_url)

    assert process.end() == 1
    assert process.lines == [
        "error: --metrics-port needs the package prometheus_client: pip install 'jobq[prometheus]'"
    ]
    assert sys.modules.get("prometheus_client") is not None
