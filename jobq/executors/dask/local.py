"""A Dask cluster of the worker's own, where no other is named: processes on this machine, that end with the worker."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from distributed import LocalCluster

from jobq.handlers import Handler

ANY_PORT = "127.0.0.1:0"


@dataclass(frozen=True, slots=True)
class LocalSize:
    """`processes`: None for as many as cores. Each has these resources."""

    processes: int | None
    resources: Mapping[str, float]


def wanted_resources(handlers: Iterable[Handler[..., Any]]) -> dict[str, float]:
    """Of each resource as much as one job wants at most: so each can run, and two of the largest never at a time."""
    most: dict[str, float] = {}
    for handler in handlers:
        for name, amount in (handler.settings.resources or {}).items():
            most[name] = max(amount, most.get(name, 0))
    return most


async def start_local(size: LocalSize) -> LocalCluster:
    """One job at a time in each process; a process that dies is replaced. No dashboard, no port but on 127.0.0.1."""
    cluster: Any = LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=size.processes or os.cpu_count() or 1,
        threads_per_worker=1,
        asynchronous=True,
        scheduler_kwargs={"dashboard": False, "dashboard_address": ANY_PORT},
        worker_dashboard_address=ANY_PORT,
        resources=dict(size.resources) or None,
    )
    return await cluster  # type: ignore[no-any-return]
