"""What an application's own tests need: jobs that run without a worker, in the test's transaction.

    jobq.testing.drain(app, session)                                 # runs what is due
    jobq.testing.assert_enqueued(session, send_receipt, order_id=7)
    with jobq.testing.context(state=api): send_receipt(7)           # a handler that asks for jobq.current()
    jobq.testing.check_history(effects, committed=ids)              # what was lost, duplicated, unexpected

The fixtures of the pytest plugin are in jobq/pytest_plugin.py.
"""

from __future__ import annotations

from jobq.testing.asserting import (
    assert_enqueued,
    assert_enqueued_async,
    enqueued,
    enqueued_async,
)
from jobq.testing.calling import context
from jobq.testing.history import History, check_history
from jobq.testing.solo import Worked
from jobq.testing.working import drain, drain_async, work_once, work_once_async

__all__ = [
    "History",
    "Worked",
    "assert_enqueued",
    "assert_enqueued_async",
    "check_history",
    "context",
    "drain",
    "drain_async",
    "enqueued",
    "enqueued_async",
    "work_once",
    "work_once_async",
]
