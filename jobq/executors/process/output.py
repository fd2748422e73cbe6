"""What a child process prints and logs, as lines of the worker's log that name the job."""

from __future__ import annotations

import asyncio
import logging
import os

from jobq.executors.process.wire import Message
from jobq.masking import mask
from jobq.model import Claimed

logger = logging.getLogger("jobq.output")
MOST_BYTES = 1 << 20  # of what one attempt prints; the rest is counted
LONGEST_LINE = 8_000
MOST_READS = 64


class Output:
    """The end of the pipe that is stdout and stderr of a child."""

    def __init__(self, pipe: int, who: str) -> None:
        self._pipe = pipe
        self._who = who
        self._job: Claimed | None = None
        self._rest = b""
        self._taken = self._left_out = 0
        os.set_blocking(pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pipe, self._read)

    def about(self, job: Claimed | None) -> None:
        """What is printed from now on belongs to this job, what was until now to the one before."""
        self.drain()
        self._job, self._taken = job, 0

    def drain(self) -> None:
        """Log what is there already, also a line without an end."""
        for _ in range(MOST_READS):  # a process that the child has started may print for ever
            if not self._read():
                break
        if self._rest:
            self._say(self._rest)
            self._rest = b""
        if self._left_out:
            self._log(logging.WARNING, f"printed {self._left_out} bytes more, that are not logged")
            self._left_out = 0

    def relay(self, message: Message) -> None:
        """A record of the child's logging, under the name of its own logger."""
        record = logging.makeLogRecord(
            {
                **message["extra"],
                **self._fields(),
                "name": message["name"],
                "levelno": message["level"],
                "levelname": logging.getLevelName(message["level"]),
                "msg": f"{self._prefix()}{message['text'].removeprefix(self._prefix())}",
                "created": message["created"],
                "msecs": message["created"] % 1 * 1000,
                "exc_text": message["trouble"],
            }
        )
        target = logging.getLogger(record.name)
        if target.isEnabledFor(record.levelno):
            target.handle(record)

    def close(self) -> None:
        if self._pipe >= 0:
            self.drain()
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> bool:
        """Whether there was something to read."""
        if self._pipe < 0:
            return False
        try:
            data = os.read(self._pipe, 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._pipe)
            return False
        self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        room = max(0, MOST_BYTES - self._taken)
        self._taken += len(data)
        self._left_out += max(0, len(data) - room)
        *lines, self._rest = (self._rest + data[:room]).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._say(line)

    def _say(self, line: bytes) -> None:
        self._log(logging.INFO, line[:LONGEST_LINE].decode(errors="replace").rstrip("\r"))

    def _log(self, level: int, text: str) -> None:
        logger.log(level, "%s%s", self._prefix(), mask(text), extra=self._fields())

    def _prefix(self) -> str:
        return f"{self._who}: " if self._job is None else f"job {self._job.id} ({self._job.kind}): "

    def _fields(self) -> dict[str, object]:
        job = self._job
        return {} if job is None else {"job_id": job.id, "kind": job.kind, "queue": job.queue, "attempt": job.attempt}
