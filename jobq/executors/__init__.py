"""Where a handler's function runs. The built-in executors use nothing that one of your own could not."""

from __future__ import annotations

from jobq.executors.base import Attempt, Call, Executor, Starts
from jobq.executors.coroutine import CoroutineExecutor
from jobq.executors.thread import ThreadExecutor

__all__ = ["Attempt", "Call", "CoroutineExecutor", "Executor", "Starts", "ThreadExecutor"]
