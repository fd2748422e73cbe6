"""The functions that run on a cluster, as the worker knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from anyio import Event

from jobq.executors.base import Attempt
from jobq.executors.dask.body import BEGAN, ENDED
from jobq.executors.dask.reports import REPORTED


@dataclass(eq=False)
class Run:
    """One submission of an attempt. `address`: of the Dask worker where its function began; `lost`: with that one.

    `stopped`: nobody waits for it any more. `gone`: it has ended, or its Dask worker has.
    """

    attempt: Attempt
    token: str
    future: Any = None
    address: str | None = None
    lost: bool = False
    stopped: bool = False
    gone: Event = field(default_factory=Event)


class Runs:
    """The runs by their tokens: until their end, those that were stopped until it is known that they have ended."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    @property
    def left_behind(self) -> set[int]:
        """Ids of jobs whose function was told to stop and still runs on the cluster."""
        return {run.attempt.job.id for run in self._runs.values() if run.stopped and run.address is not None}

    @property
    def waiting(self) -> set[str]:
        """Kinds of jobs whose function has not begun."""
        return {run.attempt.job.kind for run in self._runs.values() if run.address is None and not run.stopped}

    def add(self, run: Run) -> None:
        self._runs[run.token] = run

    def drop(self, run: Run) -> None:
        self._runs.pop(run.token, None)
        run.gone.set()

    def drop_unbegun(self, run: Run) -> None:
        """One that was stopped in time: the scheduler has had time enough to say otherwise."""
        if run.address is None:
            self.drop(run)

    def forget_stopped(self) -> None:
        """The scheduler is lost: of what was stopped nothing can be known any more."""
        for run in list(self._runs.values()):
            if run.stopped:
                self.drop(run)

    def hear(self, message: Any) -> list[Run]:
        """Take in what the scheduler tells. Returns the runs to be stopped: lost, or begun after their stop."""
        if isinstance(message, dict):
            return self._worker_is_gone(message["worker"]) if message.get("action") == "remove-worker" else []
        what, token, *more = message
        run = self._runs.get(token)
        if run is None:
            return []
        if what == BEGAN:
            return self._began(run, *more)
        if what == REPORTED and not run.stopped:
            run.attempt.report(*more)
        elif what == ENDED and run.stopped:
            self.drop(run)
        return []

    def _began(self, run: Run, address: str) -> list[Run]:
        """Dask runs a function again after the loss of its worker; jobq makes a failed attempt of that."""
        was_running, run.address = run.address, address
        if was_running is not None:
            run.lost = True
        elif not run.stopped:
            run.attempt.begins()
            return []
        return [run]

    def _worker_is_gone(self, address: str) -> list[Run]:
        there = [run for run in self._runs.values() if run.address == address]
        for run in there:
            if run.stopped:
                self.drop(run)
            else:
                run.lost = True
        return [run for run in there if not run.stopped]
