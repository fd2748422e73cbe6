"""Handlers in processes of their own: a pool of warm children, one job each at a time."""

from __future__ import annotations

from jobq.errors import OptionError
from jobq.executors.process.memory import CAN_BE_WATCHED
from jobq.executors.process.pool import ProcessExecutor, ProcessOptions
from jobq.executors.setup import Setup

__all__ = ["ProcessExecutor", "ProcessOptions", "process_executor"]


def process_executor(setup: Setup) -> ProcessExecutor:
    """Options: those of ProcessOptions. Raises: OptionError, where memory cannot be watched; WorkerError."""
    options = ProcessOptions(**setup.options)
    if options.max_memory_per_child is not None and not CAN_BE_WATCHED:
        raise OptionError("max_memory_per_child: only Linux tells how much memory another process uses")
    return ProcessExecutor(setup, options)
