"""The worker: small services in one task group (DESIGN.md, Worker)."""

from __future__ import annotations

from jobq.worker.options import WorkerOptions
from jobq.worker.stats import WorkerStats
from jobq.worker.worker import Worker

__all__ = ["Worker", "WorkerOptions", "WorkerStats"]
