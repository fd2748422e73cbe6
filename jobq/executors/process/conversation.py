"""What a worker and a child say to each other about one job."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from jobq.errors import ChildDiedError, LeaseLostError, MemoryLimitError
from jobq.executors.base import Attempt
from jobq.executors.process import wire
from jobq.executors.process.child import Child
from jobq.executors.process.crossing import end_from_wire, job_to_wire
from jobq.executors.process.memory import used_mib
from jobq.executors.process.wire import Message
from jobq.reports import NAMES
from jobq.source import Source
from jobq.verdict import Ended

LOOK_SECONDS = 0.1
DEATH_SECONDS = 0.5  # from the end of its socket to its own end


class Conversation:
    """One job in one child."""

    def __init__(self, child: Child, attempt: Attempt, source: Source, most_mib: int | None) -> None:
        self.is_over_limit = False
        self._child = child
        self._attempt = attempt
        self._source = source
        self._most_mib = most_mib
        self._used_mib = 0.0
        self._has_begun = False
        self._is_completing = False
        self._is_mute = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> Ended | None:
        """How the job ended; None when the child was gone before it had begun."""
        self._child.output.about(self._attempt.job)
        self._watch_memory()
        try:
            self._child.send({"is": "job", "job": job_to_wire(self._attempt.job)})
            return await self._converse()
        except wire.Ended as error:
            return await self._died(is_garbled=bool(error.args))
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _converse(self) -> Ended:
        while True:
            message = await self._child.receive()
            match message["is"]:
                case "began":
                    self._has_begun = True
                    self._attempt.begins()
                case "report":
                    self.hear(message)
                case "ask":
                    self._child.send({"is": "answer", **await self._answer(message["what"])})
                case "completed":
                    self._is_completing = False
                    self._attempt.completed(message["committed"])
                case "ended":
                    return end_from_wire(message["end"])

    def hear(self, message: Message) -> None:
        """What its function reports; of an earlier job it may come late, from a thread that it has left running."""
        job = self._attempt.job
        if message["of"] == [job.id, job.attempt] and message["name"] in NAMES:
            self._attempt.report(message["name"], message["text"])

    async def _answer(self, what: str) -> dict[str, Any]:
        try:
            match what:
                case "completes":
                    return self._may_complete()
                case "settled":
                    return {"value": await self._attempt.settled()}
                case _:
                    return {"value": _that_can_cross(await self._source.parameters())}
        except LeaseLostError as error:
            return {"lost": str(error)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _may_complete(self) -> dict[str, Any]:
        if not self._attempt.completes():
            return {"lost": f"job {self._attempt.job.id} was stopped: its work is rolled back"}
        self._is_completing = True
        return {"value": True}

    async def _died(self, *, is_garbled: bool) -> Ended | None:
        """The child is gone, and the job with it; the job's own commit may have come through before.

        `is_garbled`: what it said last was no message, whatever it ended by then.
        """
        self._is_mute = is_garbled or not await self._child.dies(DEATH_SECONDS)
        await self._child.kill()
        self._child.output.drain()
        if self._is_completing:
            self._attempt.completed(await self._has_committed())
        return Ended(error=self._death()) if self._has_begun else None

    async def _has_committed(self) -> bool:
        try:
            return await self._attempt.settled()
        except LeaseLostError:
            return False

    def _death(self) -> ChildDiedError:
        code = self._child.popen.returncode
        if self.is_over_limit:
            used = f"{self._used_mib:.0f} MiB"
            return MemoryLimitError(
                f"the job's process used {used} of memory, more than the {self._most_mib} MiB that a child may",
                signal=signal.SIGKILL,
            )
        if self._is_mute or code is None:
            return ChildDiedError("the job's process was ended: it spoke with the worker no more, or wrongly")
        if code >= 0:
            return ChildDiedError(f"the job's process ended with exit code {code} before the job did", exit_code=code)
        name = _signal_name(-code)
        hint = " (the kernel does so when memory runs out)" if -code == signal.SIGKILL else ""
        return ChildDiedError(f"the job's process was ended by signal {-code} ({name}){hint}", signal=-code)

    def _watch_memory(self) -> None:
        """A look now and again: a limit of the kernel's would end in a MemoryError at some place, or in a crash."""
        if self._most_mib is None:
            return
        self._used_mib = used_mib(self._child.pid)
        if self._used_mib > self._most_mib:
            self.is_over_limit = True
            self._child.signal(signal.SIGKILL)
        else:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._watch_memory)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _that_can_cross(parameters: Message) -> Message:
    """Raises: TypeError, for what has no JSON form."""
    wire.pack(parameters)
    return parameters
