"""What a handler reports in a child, on its way to the worker: the latest, a few times a second."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from jobq.child.parent import Parent
from jobq.model import Claimed

BETWEEN_SECONDS = 0.1  # a handler may report in its innermost loop


class Reports:
    """A thread sends them, started by the first: a handler that reports never waits for the worker."""

    def __init__(self, parent: Parent) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._sending = threading.Lock()  # the order of reports, and of the end behind them
        self._pending: dict[tuple[int, int, str], str] = {}
        self._arrived = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self, job: Claimed, name: str, text: str) -> None:
        """Have the report of an attempt sent soon. From any thread."""
        with self._lock:
            self._pending[job.id, job.attempt, name] = text
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jobq-reports", daemon=True)
                self._thread.start()
        self._arrived.set()

    def flush(self) -> None:
        """Send what is left. Nothing of it is sent later."""
        with self._sending:
            with self._lock:
                pending, self._pending = self._pending, {}
            for (id_, attempt, name), text in pending.items():
                self._parent.tell({"is": "report", "of": [id_, attempt], "name": name, "text": text})

    def _run(self) -> None:
        while True:
            self._arrived.wait()
            self._arrived.clear()
            with suppress(OSError):  # the worker is gone, and with it soon this process
                self.flush()
            time.sleep(BETWEEN_SECONDS)
