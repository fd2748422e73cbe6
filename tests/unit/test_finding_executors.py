"""Executors by entry point: found, and refused with one line where something is wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq import executors
from jobq.executors.finding import options_from_environment

URL = "postgresql://127.0.0.1/any"
SOURCE = """
class Executor:
    left_behind = frozenset()
    def __init__(self, setup): self.setup = setup
    async def run(self, call): ...
    async def close(self): ...

class Taking(Executor):
    takes_resources = True

def breaks(setup):
    raise ValueError("no address")

def refuses(setup):
    from jobq import WorkerError
    raise WorkerError("give it an address")

def gives_nothing(setup):
    return object()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package that brings an executor."""

    def install(package: str, entry: str, source: str = SOURCE) -> None:
        site = tmp_path / package
        about = site / f"{package}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[jobq.executors]\n{entry}\n")
        (site / f"{package}.py").write_text(source)
        monkeypatch.syspath_prepend(site)

    return install


def worker_for(executor: str, **options: Any) -> jobq.Worker:
    app = jobq.App()
    app.handler("k", executor=executor, **options)(lambda: None)
    return jobq.Worker(app, URL, name="one")


def test_an_executor_is_made_with_what_it_needs(install: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    install("far_away", "far.away = far_away:Executor")
    monkeypatch.setenv("JOBQ_FAR_AWAY_ADDRESS", "ray://head")

    worker = worker_for("far.away")

    made: Any = worker._setting.executors["far.away"]
    setup: executors.Setup = made.setup
    assert (setup.name, setup.worker, setup.concurrency, setup.options) == (
        "far.away", "one", 20, {"address": "ray://head"},
    )  # fmt: skip
    assert list(setup.handlers) == ["k"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        pytest.param("cloudy:Missing", r"\(cloudy:Missing\) cannot be made: AttributeError: .*Missing", id="missing"),
        pytest.param("nowhere:Executor", r"cannot be made: ModuleNotFoundError: No module .*nowhere", id="no_module"),
        pytest.param("cloudy:breaks", "cannot be made: ValueError: no address", id="breaks"),
        pytest.param("cloudy:refuses", "^give it an address$", id="its_own_words"),
        pytest.param("cloudy:gives_nothing", "is none: .* gave a object, which has no run, left_behind", id="nothing"),
    ],
)
def test_a_wrong_entry_point_is_one_line_that_names_it(install: Callable[..., None], entry: str, said: str) -> None:
    install("cloudy", f"cloud = {entry}")

    with pytest.raises(jobq.WorkerError, match=said) as caught:
        worker_for("cloud")

    assert "\n" not in str(caught.value)
    assert "give it" in str(caught.value) or "'cloud' of the package cloudy" in str(caught.value)


def test_two_packages_with_one_name_are_refused_with_both(install: Callable[..., None]) -> None:
    install("one_cloud", "cloud = one_cloud:Executor")
    install("two_clouds", "cloud = two_clouds:Executor")

    with pytest.raises(jobq.WorkerError, match=r"one_cloud:Executor, two_clouds:Executor"):
        worker_for("cloud")


def test_a_package_does_not_take_over_an_executor_of_jobqs_own(install: Callable[..., None]) -> None:
    install("thief", "process = thief:breaks")

    with pytest.raises(jobq.WorkerError, match="run in processes that import the application"):
        worker_for("process")


def test_a_name_that_nobody_knows_is_refused_with_those_that_are(install: Callable[..., None]) -> None:
    install("known_one", "cloud = known_one:Executor")

    with pytest.raises(
        jobq.WorkerError, match=r"no executor named moon \(known: async, cloud, dask, process, thread\)"
    ):
        worker_for("moon")


def test_a_worker_without_such_handlers_loads_no_entry_point(install: Callable[..., None]) -> None:
    install("explosive", "cloud = explosive:Executor", source="raise SystemExit('loaded')")

    worker_for("auto")


def test_resources_are_for_executors_that_take_them(install: Callable[..., None]) -> None:
    install("plain_one", "plain = plain_one:Executor\ntaking = plain_one:Taking")

    worker_for("taking", resources={"GPU": 1})
    with pytest.raises(jobq.WorkerError, match="asks for resources, which its executor 'plain' does not take"):
        worker_for("plain", resources={"GPU": 1})


@pytest.mark.parametrize("executor", ["auto", "async", "thread", "process"])
def test_resources_are_refused_where_nothing_looks_at_them(executor: str) -> None:
    with pytest.raises(jobq.RegistrationError, match="resources: nothing looks at them"):
        jobq.App().handler("k", executor=executor, resources={"GPU": 1})(lambda: None)


@pytest.mark.parametrize(
    ("resources", "error"),
    [
        pytest.param({}, jobq.OptionError, id="empty"),
        pytest.param({"GPU": 0}, jobq.OptionError, id="zero"),
        pytest.param({"GPU": float("inf")}, jobq.OptionError, id="without_end"),
        pytest.param({"GPU": float("nan")}, jobq.OptionError, id="nan"),
        pytest.param({"": 1}, jobq.OptionError, id="no_name"),
        pytest.param({"GPU": True}, jobq.OptionTypeError, id="bool"),
        pytest.param({"GPU": "1"}, jobq.OptionTypeError, id="text"),
        pytest.param({1: 1}, jobq.OptionTypeError, id="no_text"),
        pytest.param(["GPU"], jobq.OptionTypeError, id="list"),
    ],
)
def test_resources_are_names_with_finite_amounts(resources: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^resources: "):
        jobq.App().handler("k", executor="dask", resources=resources)


def test_options_from_the_environment_are_those_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_RAY_ADDRESS", "auto")
    monkeypatch.setenv("JOBQ_RAY_NAME_SPACE", "shop")
    monkeypatch.setenv("JOBQ_OTHER", "no")

    assert options_from_environment("ray") == {"address": "auto", "name_space": "shop"}


def test_without_dask_the_worker_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)

    with pytest.raises(jobq.WorkerError, match=r'pip install "jobq\[dask\]"'):
        worker_for("dask")


def test_the_protocol_is_public() -> None:
    names = {"Attempt", "Call", "Ended", "Executor", "Factory", "Setup", "Starts", "end_of", "order_of", "perform"}

    assert names <= set(executors.__all__)
    assert all(getattr(executors, name).__doc__ for name in names - {"Factory"})
