"""The same beside many queues: of different weights, and some that are held back."""

from __future__ import annotations

import jobq
from jobq.options import Priority
from jobq_cli.bench.app import app, noop

QUEUES = [f"mixed-{number}" for number in range(40)]
PACED = [f"paced-{number}" for number in range(4)]
PRIORITIES: tuple[Priority, ...] = (0, 1, 2, 3)

for number, name in enumerate(QUEUES):
    app.queue(name, weight=1 + number % 5)
for name in PACED:
    app.queue(name, concurrency=1, throttle=jobq.per_minute(60))

__all__ = ["PACED", "PRIORITIES", "QUEUES", "app", "noop"]
