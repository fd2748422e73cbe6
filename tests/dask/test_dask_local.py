"""Without an address: a cluster of the worker's own, in processes of this machine."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import dask_app
import psutil
import pytest
from bench import Bench, eventually
from dask_app import app

from jobq import State
from jobq.executors.dask import import_distributed


@pytest.mark.anyio
async def test_a_cluster_of_its_own_heals_and_ends_with_the_worker(bench: Bench) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    async with bench.working(app, processes=1):
        died = bench.enqueue(dask_app.dies)
        failed = await bench.until_retried(died)
        id_ = bench.enqueue(dask_app.on_gpu)
        await eventually(lambda: bench.job(id_).state is State.DONE, "the process that replaces it", within=30)
    after = {child.pid for child in psutil.Process().children(recursive=True) if "tracker" not in str(child.cmdline())}

    assert failed.errors[0].error == "jobq.errors.ChildDiedError"
    assert after <= before


LOGGERS = """
import logging
from jobq.executors.dask import import_distributed
import_distributed()
loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado")]
assert [(logger.propagate, logger.handlers) for logger in loggers] == [(True, [])] * 3
"""


def test_what_dask_logs_goes_where_the_application_says() -> None:
    subprocess.run([sys.executable, "-c", LOGGERS], check=True)


def test_a_client_that_is_closed_while_it_looks_for_its_scheduler_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    import_distributed()

    for error in (asyncio.CancelledError(), OSError("refused")):
        logging.getLogger("distributed.client").error("%s", error, exc_info=error)

    assert [record.getMessage() for record in caplog.records] == ["refused"]
