"""One queue's steps, each a process in the environment of that queue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from jobq_cli.bench import probe

HERE = Path(__file__).parents[1]
PROBE_FOLDER = Path(probe.__file__).parent
STEP_SECONDS = 600.0
STOP_SECONDS = 15.0


class StepFailed(Exception):
    """A queue could not do what it was asked for; its last words."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Worker processes that run, and what they write to stdout and stderr."""

    pids: list[int]
    log: IO[bytes]

    @property
    def lines(self) -> int:
        """How many they have written so far."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).count(b"\n")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, the Python that has it, and the database that all of them take turns in."""

    name: str
    python: str
    dsn: str
    probe: str

    @property
    def script(self) -> Path:
        places = [HERE / f"peer_{self.name}.py", HERE / "peers" / f"peer_{self.name}.py"]
        return next((place for place in places if place.exists()), places[1])

    def call(self, step: str, **options: Any) -> dict[str, Any]:
        """Run a step to its end; what it answered. Raises: StepFailed."""
        done = subprocess.run(
            self._command(step, options), env=self._environment(), capture_output=True, text=True, timeout=STEP_SECONDS
        )
        if done.returncode:
            raise StepFailed(f"{self.name} {step}: {done.stderr.strip()[-1500:]}")
        answers = [line for line in done.stdout.splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(answers[-1]) if answers else {}
        return found

    @contextmanager
    def working(self, number: int) -> Iterator[Workers]:
        """So many worker processes. They are stopped at the end."""
        command = self._command("worker", {})
        with tempfile.TemporaryFile() as log:
            environment = {**self._environment(), "BENCH_WORKERS": str(number)}
            workers = [
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
                for _ in range(number)
            ]
            try:
                yield Workers([worker.pid for worker in workers], log)
            finally:
                _stop(workers)

    def _command(self, step: str, options: dict[str, Any]) -> list[str]:
        flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        return [self.python, str(self.script), step, *flags]

    def _environment(self) -> dict[str, str]:
        path = [str(HERE / "peers"), str(PROBE_FOLDER), os.environ.get("PYTHONPATH", "")]
        ours = {"BENCH_DSN": self.dsn, probe.VARIABLE: self.probe, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        return {**os.environ, **ours, "PYTHONUNBUFFERED": "1"}


def _stop(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    for worker in workers:
        try:
            worker.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)  # the session that was started here
            worker.wait()
