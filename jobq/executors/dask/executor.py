"""The Dask executor: submits an order for each job, and makes of what becomes of it how the job ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

from distributed import Client, Event, KilledWorker

from jobq.errors import ChildDiedError, WorkerError
from jobq.executors.base import Call
from jobq.executors.dask import body
from jobq.executors.dask.cluster import Cluster
from jobq.executors.dask.runs import Run, Runs
from jobq.executors.dask.wants import wants
from jobq.executors.elsewhere import end_of, order_of
from jobq.executors.patience import awake_timeout
from jobq.executors.process.place import needs_kinds
from jobq.executors.setup import Setup
from jobq.outcomes import Permanent
from jobq.verdict import Ended

logger = logging.getLogger("jobq.worker")

PATIENCE_SECONDS = 0.5  # what a function has to end once it is told to, before it is left behind
UNBEGUN_SECONDS = 10.0  # in which Dask may still begin what was cancelled
PAUSE_SECONDS = 0.2
QUIET_SECONDS = 10.0  # jobs that have waited for so long for their begin may wait for what the cluster has not
ANSWER_SECONDS = 5.0
START_SECONDS = 120.0  # what the import of an application may take


class DaskExecutor:
    """Runs functions on the workers of a Dask cluster."""

    takes_resources = True

    def __init__(self, setup: Setup, cluster: Cluster) -> None:
        self._handlers = setup.handlers
        self._place = setup.place()
        self._cluster = cluster
        self._runs = Runs()
        self._unmarked: list[str] = []
        self._looks_at = 0.0
        self._said: dict[str, str] = {}  # what jobs of a kind wait for, until one of them has ended
        cluster.on_event = self._hear

    @property
    def left_behind(self) -> Collection[int]:
        """Of what was stopped, as long as its scheduler can tell of it."""
        if not self._cluster.is_connected:
            self._runs.forget_stopped()
        return self._runs.left_behind

    async def start(self) -> None:
        """Connect, and have the Dask workers that are there import the application. Raises: WorkerError."""
        await self._cluster.start()
        place, client = self._place, await self._cluster.client()
        asked = client.run(body.kinds, place.module, place.attribute, list(place.others), on_error="return")
        try:
            found = await asyncio.wait_for(asked, START_SECONDS)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise WorkerError(f"the Dask workers cannot be asked for their handlers: {why}") from error
        for address, answer in found.items():
            self._check(address, answer)
        self._warn({*(await self._wants(client, self._handlers)).values()})

    async def run(self, call: Call) -> Ended:
        """Waits for the cluster while its scheduler is away; a job that ran then is submitted anew, as this attempt."""
        assert call.attempt is not None
        while True:
            call.attempt.waits()
            client = await self._cluster.client()
            run = Run(call.attempt, f"jobq-{call.context.job.id}-{uuid4().hex}")
            ended = await self._submit(client, run)
            if ended is not None:
                return ended
            await asyncio.sleep(PAUSE_SECONDS)

    async def close(self) -> None:
        await self._cluster.close()

    async def _submit(self, client: Client, run: Run) -> Ended | None:
        """How it ended; None when the scheduler was lost before that was known, or before it began."""
        job, order, topic = run.attempt.job, order_of(run.attempt, self._place), self._cluster.topic
        resources = dict(self._handlers[job.kind].settings.resources or {}) or None
        more: Any = {"pure": False, "retries": 0, "resources": resources, "priority": -job.priority}
        self._runs.add(run)
        run.future = client.submit(body.run, order, run.token, topic, key=run.token, **more)
        answering = asyncio.ensure_future(_answer_of(run.future))
        try:
            while run.address is None and not answering.done():
                await asyncio.wait([answering], timeout=QUIET_SECONDS)
                await self._say_wants(client)
            answer = await asyncio.shield(answering)
        except asyncio.CancelledError:
            await self._stop(run)
            raise
        if isinstance(answer, str) and answer != body.BEGUN_BEFORE:
            self._runs.drop(run)
            self._said.pop(job.kind, None)
            await self._forget_begin(client, run)
            return end_of(answer)
        return await self._failed(client, run, answer)

    async def _failed(self, client: Client, run: Run, error: Exception | str) -> Ended | None:
        is_lost, address = run.lost, run.address
        self._release(run)
        if self._cluster.is_lost(client):
            return self._interrupted(run, "scheduler") if address is not None else None
        if is_lost or isinstance(error, str):
            lost = ChildDiedError(f"the Dask worker {address} was lost before the job ended")
            return self._interrupted(run, "worker") or Ended(error=lost)
        if isinstance(error, KilledWorker):
            return Ended(error=ChildDiedError(f"the Dask workers that it was sent to were lost: {error}"))
        return Ended(error=error)

    async def _say_wants(self, client: Client) -> None:
        """Say what jobs would wait for without end, of each kind once; one look serves all that wait."""
        kinds = self._runs.waiting
        if not kinds or monotonic() < self._looks_at:
            return
        self._looks_at = monotonic() + QUIET_SECONDS
        found = await self._wants(client, kinds)
        self._warn({*found.values()} - {*self._said.values()})
        self._said = found

    async def _wants(self, client: Client, kinds: Iterable[str]) -> dict[str, str]:
        """Empty, too, when the scheduler does not answer: that is told of elsewhere."""
        scheduler: Any = client.scheduler
        try:
            there = await asyncio.wait_for(scheduler.identity(), ANSWER_SECONDS)
        except Exception:
            return {}
        return wants(
            {kind: self._handlers[kind] for kind in kinds}, [each["resources"] for each in there["workers"].values()]
        )

    def _warn(self, found: Collection[str]) -> None:
        for want in sorted(found):
            logger.warning("the Dask scheduler %s has %s", self._cluster.where, want)

    async def _stop(self, run: Run) -> None:
        """Tell the function to stop, and Dask to forget it; for a moment it may end, then it is left behind."""
        run.stopped, has_begun = True, run.address is not None
        if not has_begun:
            self._release(run)
        with suppress(Exception):
            async with awake_timeout(PATIENCE_SECONDS):
                await run.future.cancel()
                if has_begun:
                    await self._tell_to_stop(run)
                    await run.gone.wait()

    async def _tell_to_stop(self, run: Run) -> None:
        client, topic = run.future.client, self._cluster.topic
        await client.run(body.stop, run.token, topic, workers=[run.address], wait=False, on_error="ignore")

    async def _forget_begin(self, client: Client, run: Run) -> None:
        """Its mark on the scheduler, which would stay there for ever; and the marks of those that were released."""
        tokens = [run.token, *self._unmarked]
        self._unmarked.clear()
        with suppress(Exception):
            async with asyncio.timeout(PATIENCE_SECONDS):
                for token in tokens:
                    event: Any = Event(token, client=client)  # type: ignore[no-untyped-call]
                    await event.clear()

    def _release(self, run: Run) -> None:
        """Nobody waits for it any more; if Dask begins it nevertheless, its mark or `_hear` stops it."""
        run.stopped, run.address = True, None
        asyncio.get_running_loop().call_later(UNBEGUN_SECONDS, self._forget, run)

    def _forget(self, run: Run) -> None:
        self._runs.drop_unbegun(run)
        self._unmarked.append(run.token)

    async def _hear(self, message: Any) -> None:
        for run in self._runs.hear(message):
            with suppress(Exception):
                await self._give_up(run)

    async def _give_up(self, run: Run) -> None:
        """Lost with its Dask worker, which `_submit` sees when its future is cancelled; or begun after all."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await run.future.cancel()
            if run.stopped:
                await self._tell_to_stop(run)

    def _interrupted(self, run: Run, by: str) -> Ended | None:
        """The end of a job that may not run twice, and has begun."""
        if self._handlers[run.attempt.job.kind].settings.on_interrupt != "fail":
            return None
        return Ended(error=Permanent(f"interrupted: the Dask {by} was lost while it ran"))

    def _check(self, address: str, answer: Any) -> None:
        """Raises: WorkerError, when this Dask worker has not the handlers. One that is gone meanwhile is no reason."""
        if isinstance(answer, OSError):
            return
        if not isinstance(answer, list):
            raise WorkerError(f"the Dask worker {address} cannot run jobs: {answer}")
        needs_kinds(self._place, self._handlers, answer, f"the Dask worker {address}")


async def _answer_of(future: Any) -> str | Exception:
    """The answer, or what was raised in place of one.

    In a task of its own, never cancelled: Dask fetches the results of several futures at a time, and a cancellation of
    one would end that for all.
    """
    try:
        return str(await future.result())
    except Exception as error:
        return error
