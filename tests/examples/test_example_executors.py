"""examples/own_executors: installed as a package, found by its entry points, and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import own_app
import psutil
import pytest
import sqlalchemy as sa
from hatchling.builders.wheel import WheelBuilder

import jobq
from jobq import State

sys.path.append(str(Path(__file__).parents[1] / "worker"))  # its bench serves here too
from bench import Bench, eventually

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "examples" / "own_executors"
DESIGN = ROOT / "DESIGN.md"
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed."""
    folder = tmp_path_factory.mktemp("site")
    (wheel,) = WheelBuilder(str(FOLDER)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture
def bench(database_url: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A database, and an environment with the package in it, for programs that are started too."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(HERE)]))
    engine = sa.create_engine(database_url)
    yield Bench(database_url, engine)
    engine.dispose()


def only(executor: str) -> jobq.App:
    """The application with the handlers of one executor."""
    app = jobq.App()
    for kind, handler in own_app.app.handlers.items():
        if handler.executor == executor:
            app.handler(kind, executor=executor, max_attempts=1, timeout=handler.settings.timeout)(handler.function)
    return app


async def until_all_ways(bench: Bench, executor: str) -> dict[str, jobq.Job]:
    """A job of each handler, to its end."""
    app = only(executor)
    handlers = {kind.partition(".")[2]: handler for kind, handler in app.handlers.items()}
    async with bench.working(app, app_path="own_app:app") as worker:
        ids = {
            "greet": bench.enqueue(handlers["greet"], "Ann"),
            "fails": bench.enqueue(handlers["fails"]),
            "dies": bench.enqueue(handlers["dies"]),
            "sleeps": bench.enqueue(handlers["sleeps"]),
        }
        ended = await bench.until_all_ended()
        assert len(ended) == 4
        jobs = {name: bench.job(id_) for name, id_ in ids.items()}
        assert worker.stats().left_behind == 0
    return jobs


def check(jobs: dict[str, jobq.Job], program: str) -> None:
    greeting = str(jobs["greet"].outcome)
    assert greeting.startswith("ok: hello Ann from ")
    assert int(greeting.rpartition(" ")[2]) != os.getpid()
    assert {name: job.state for name, job in jobs.items() if name != "greet"} == dict.fromkeys(
        ("fails", "dies", "sleeps"), State.DEAD
    )
    assert (jobs["fails"].errors[0].error, jobs["fails"].errors[0].message) == ("LookupError", "no such name")
    assert jobs["dies"].errors[0].error == "jobq.errors.ChildDiedError"
    assert jobs["sleeps"].errors[0].error == "TimeoutError"
    assert not [child for child in psutil.Process().children() if program in child.cmdline()]


async def test_the_program_executor_is_found_by_its_entry_point(bench: Bench) -> None:
    jobs = await until_all_ways(bench, "program")

    check(jobs, "jobq_program")


def test_the_example_has_less_than_forty_lines() -> None:
    assert len((FOLDER / "jobq_program.py").read_text().splitlines()) < 40


class FakeKubernetes:
    """The calls of the API that the recipe makes; a pod is a process here."""

    def __init__(self) -> None:
        self.pods: dict[str, subprocess.Popen[str]] = {}
        self.deleted: list[str] = []

    def create_namespaced_job(self, namespace: str, body: dict[str, Any]) -> None:
        (container,) = body["spec"]["template"]["spec"]["containers"]
        assert (namespace, container["image"], body["spec"]["backoffLimit"]) == ("shop", "shop:1", 0)
        environment = {**os.environ, **{each["name"]: each["value"] for each in container["env"]}}
        command = [sys.executable, *container["command"][1:]]
        self.pods[body["metadata"]["name"]] = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        )

    def read_namespaced_job_status(self, namespace: str, name: str) -> SimpleNamespace:
        code = self.pods[name].poll()
        return SimpleNamespace(status=SimpleNamespace(succeeded=code == 0, failed=bool(code), ready=code is None))

    def list_namespaced_pod(self, namespace: str, label_selector: str) -> SimpleNamespace:
        name = label_selector.removeprefix("job-name=")
        return SimpleNamespace(items=[SimpleNamespace(metadata=SimpleNamespace(name=name))])

    def read_namespaced_pod_log(self, namespace: str, name: str) -> str:
        with self.pods[name].stdout as log:  # type: ignore[union-attr]
            return log.read()

    def delete_namespaced_job(self, namespace: str, name: str, propagation_policy: str) -> None:
        with self.pods[name] as pod:
            pod.kill()
        self.deleted.append(name)


async def test_the_kubernetes_recipe_runs_each_job_in_a_job_of_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeKubernetes()
    kubernetes = SimpleNamespace(
        config=SimpleNamespace(load_config=lambda: None),
        client=SimpleNamespace(BatchV1Api=lambda: fake, CoreV1Api=lambda: fake),
    )
    monkeypatch.setitem(sys.modules, "kubernetes", kubernetes)  # type: ignore[arg-type]
    monkeypatch.setenv("JOBQ_KUBERNETES_IMAGE", "shop:1")
    monkeypatch.setenv("JOBQ_KUBERNETES_NAMESPACE", "shop")

    jobs = await until_all_ways(bench, "kubernetes")
    await eventually(lambda: len(fake.deleted) == 4, "each being deleted")

    check(jobs, "jobq_kubernetes")
    assert set(fake.deleted) == {f"jobq-{job.id}-1" for job in jobs.values()}


class FakeRay:
    """The calls that the recipe makes; a task is a thread here."""

    class exceptions:  # noqa: N801  # its name in Ray
        class RayError(Exception):
            pass

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(4)
        self.wanted: list[dict[str, Any]] = []
        self.cancelled: list[Any] = []

    def init(self, **options: Any) -> None:
        assert options["address"] == "ray://head"

    def remote(self, **options: Any) -> Any:
        assert options == {"max_retries": 0}
        return lambda function: SimpleNamespace(options=lambda **wanted: self._task(function, wanted))

    def _task(self, function: Any, wanted: dict[str, Any]) -> SimpleNamespace:
        self.wanted.append(wanted)

        def start(order: str) -> SimpleNamespace:
            if '"ray.dies"' in order:
                return self._answer(self.pool.submit(self._lose))
            return self._answer(self.pool.submit(function, order))

        return SimpleNamespace(remote=start)

    def _answer(self, future: Any) -> SimpleNamespace:
        return SimpleNamespace(future=lambda: future)

    def _lose(self) -> None:
        raise self.exceptions.RayError

    def cancel(self, answer: Any, *, force: bool) -> None:
        assert force
        self.cancelled.append(answer)

    def shutdown(self) -> None:
        self.pool.shutdown(wait=False)


async def test_the_ray_recipe_asks_for_resources_and_hears_of_losses(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake: Any = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setenv("JOBQ_RAY_ADDRESS", "ray://head")
    app = jobq.App()
    resources = {"ray.greet": {"GPU": 1, "TPU": 2}, "ray.dies": None}
    for kind, wanted in resources.items():
        app.handler(kind, executor="ray", max_attempts=1, resources=wanted)(own_app.app.handlers[kind].function)

    async with bench.working(app, app_path="own_app:app"):
        greeted = await bench.until(bench.enqueue(app.handlers["ray.greet"], "Ann"))
        died = await bench.until(bench.enqueue(app.handlers["ray.dies"]))

    assert str(greeted.outcome).startswith("ok: hello Ann from ")
    assert fake.wanted[0] == {"num_cpus": 1, "num_gpus": 1, "resources": {"TPU": 2}}
    assert died.errors[0].message == "the job's Ray task was lost: RayError"


def test_the_recipes_in_the_design_are_these_files() -> None:
    found = re.findall(r"^```python\n# (jobq_\w+\.py)\n(.*?)^```$", DESIGN.read_text(), re.MULTILINE | re.DOTALL)

    assert dict(found).items() == {file.name: file.read_text() for file in FOLDER.glob("*.py")}.items()
