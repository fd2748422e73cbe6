"""Where a handler's function runs: the protocol of executors, and what one of your own is made with.

An executor is any object with what `Executor` promises. A worker takes it by `executors={"name": ...}`, or finds it by
the entry point of an installed package, in the group `jobq.executors`: the name that handlers ask for, and a function
that is given a `Setup`. jobq's own are made in the same way and use nothing that one of yours could not.

Where the function runs in another process, `order_of` makes a text of the attempt, `perform` runs it there, and
`end_of` makes of its answer how the job ended.
"""

from __future__ import annotations

from jobq.executors.base import Attempt, Begins, Bounded, Call, Executor, Starts
from jobq.executors.coroutine import CoroutineExecutor
from jobq.executors.elsewhere import end_of, order_of, perform
from jobq.executors.process.place import Place
from jobq.executors.setup import Factory, Setup
from jobq.executors.thread import ThreadExecutor
from jobq.verdict import Ended

__all__ = [
    "Attempt",
    "Begins",
    "Bounded",
    "Call",
    "CoroutineExecutor",
    "Ended",
    "Executor",
    "Factory",
    "Place",
    "Setup",
    "Starts",
    "ThreadExecutor",
    "end_of",
    "order_of",
    "perform",
]
