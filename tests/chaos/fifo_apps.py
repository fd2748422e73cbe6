"""The application of the chaos tests with forty queues, each of which runs one job at a time."""

from __future__ import annotations

from apps import app as app

QUEUES = tuple(f"fifo{n:02}" for n in range(40))

for name in QUEUES:
    app.queue(name, fifo=True)
