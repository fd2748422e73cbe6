"""Handlers on a Dask cluster: claims, leases, retries and completions stay with the worker. Needs the extra `dask`."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

from jobq.errors import WorkerError
from jobq.executors.setup import Setup

if TYPE_CHECKING:
    from jobq.executors.dask.executor import DaskExecutor

__all__ = ["dask_executor"]

LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application", "bokeh")


def dask_executor(setup: Setup) -> DaskExecutor:
    """Options: scheduler, the address of a running cluster; processes, how many a cluster of its own has."""
    import_distributed()
    from jobq.executors.dask.cluster import Cluster
    from jobq.executors.dask.executor import DaskExecutor
    from jobq.executors.dask.local import LocalSize, wanted_resources

    processes, scheduler = setup.options.get("processes"), setup.options.get("scheduler")
    size = LocalSize(processes, wanted_resources(setup.handlers.values()))
    return DaskExecutor(setup, Cluster(scheduler, size, name=setup.worker))


def import_distributed() -> None:
    """At its first import it takes its loggers out of the application's log, to write to stderr: they are put back."""
    is_first = "distributed" not in sys.modules
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise WorkerError(
            f'handlers with executor="dask" need Dask distributed: pip install "jobq[dask]" ({error})'
        ) from error
    for name in LOGGERS if is_first else ():
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    if is_first:
        logging.getLogger("distributed").setLevel(logging.WARNING)
    logging.getLogger("distributed.client").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Not the stack of where a client was looking for its scheduler when it was closed."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)
