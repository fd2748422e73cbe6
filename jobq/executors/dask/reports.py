"""What a function reports on a Dask worker, on its way to the worker of jobq: the latest, a few times a second."""

from __future__ import annotations

import threading

from distributed import Worker

BETWEEN_SECONDS = 0.2  # a function may report in its innermost loop
REPORTED = "reported"


class Reports:
    """Of one run. They go by the stream that tells the end of the run too, and arrive before it."""

    def __init__(self, worker: Worker, token: str, topic: str) -> None:
        self._worker = worker
        self._token = token
        self._topic = topic
        self._lock = threading.Lock()
        self._pending: dict[str, str] = {}

    def note(self, name: str, text: str) -> None:
        """Have a report sent soon. From any thread."""
        with self._lock:
            is_first = not self._pending
            self._pending[name] = text
        if is_first:
            self._worker.loop.add_callback(self._worker.loop.call_later, BETWEEN_SECONDS, self.flush)

    def flush(self) -> None:
        """Send what is left."""
        with self._lock:
            pending, self._pending = self._pending, {}
        for name, text in pending.items():
            self._worker.log_event(self._topic, [REPORTED, self._token, name, text])
