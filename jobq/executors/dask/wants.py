"""What jobs would wait for on a cluster without end. Values in, sentences out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobq.handlers import Handler

NO_WORKERS = "no workers: jobs wait for some"


def wants(handlers: Mapping[str, Handler[..., Any]], has: Iterable[Mapping[str, float]]) -> dict[str, str]:
    """By kind, what no Dask worker can give that its handler needs. `has`: the resources of each Dask worker."""
    workers = list(has)
    if not workers:
        return dict.fromkeys(handlers, NO_WORKERS)
    asked = {kind: handler.settings.resources or {} for kind, handler in handlers.items()}
    return {
        kind: f"no worker with {_written(resources)}: jobs of kind {kind} wait for one"
        f' (dask worker ... --resources "{_written(resources)}")'
        for kind, resources in asked.items()
        if not any(_gives(worker, resources) for worker in workers)
    }


def _gives(worker: Mapping[str, float], resources: Mapping[str, float]) -> bool:
    return all(worker.get(name, 0) >= amount for name, amount in resources.items())


def _written(resources: Mapping[str, float]) -> str:
    return ",".join(f"{name}={amount:g}" for name, amount in resources.items())
