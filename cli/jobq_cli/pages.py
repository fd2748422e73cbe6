"""What a worker's ports answer: is the process alive, does the worker take jobs, and its metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from anyio import to_thread

from jobq import Worker
from jobq_cli.connect import Target, engine_for
from jobq_cli.failures import Failed
from jobq_cli.ports import Answer, Page, Port


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; `number` None: nowhere."""

    host: str
    number: int | None


def ports_of(worker: Worker, target: Target, health: Address, metrics: Address) -> list[Port]:
    """The ports that were asked for; one that serves both where the addresses are the same. Raises: Failed."""
    probes = {} if health.number is None else _probes(worker)
    numbers = {} if metrics.number is None else _metrics(worker, target)
    if health == metrics and health.number:
        return [Port(health.host, health.number, {**probes, **numbers})]
    wanted = ((health, probes), (metrics, numbers))
    return [Port(each.host, each.number, pages) for each, pages in wanted if each.number is not None]


def _probes(worker: Worker) -> dict[str, Page]:
    async def alive() -> Answer:
        return Answer(b"ok\n")

    async def ready() -> Answer:
        problems = worker.health().problems
        if not problems:
            return Answer(b"ok\n")
        return Answer("".join(f"FAILED: {each}\n" for each in problems).encode(), HTTPStatus.SERVICE_UNAVAILABLE)

    return {"/healthz": alive, "/readyz": ready}


def _metrics(worker: Worker, target: Target) -> dict[str, Page]:
    write, content_type = _exposition(worker, target)

    async def metrics() -> Answer:
        return Answer(await to_thread.run_sync(write, abandon_on_cancel=True), content_type=content_type)

    return {"/metrics": metrics}


def _exposition(worker: Worker, target: Target) -> tuple[Callable[[], bytes], str]:
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

        from jobq.metrics import Collector
    except ModuleNotFoundError as error:
        raise Failed(f"--metrics-port needs the package {error.name}: pip install 'jobq[prometheus]'") from error
    REGISTRY.register(Collector(engine_for(target), worker))  # with those of the process, and of the application
    return lambda: generate_latest(REGISTRY), CONTENT_TYPE_LATEST
