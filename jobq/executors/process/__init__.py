"""Handlers in processes of their own: a pool of warm children, one job each at a time."""

from __future__ import annotations

from jobq.executors.process.pool import ProcessExecutor, ProcessOptions

__all__ = ["ProcessExecutor", "ProcessOptions"]
