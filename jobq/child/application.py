"""Importing the application in a child, as its worker has done it."""

from __future__ import annotations

import os
import sys

from jobq.child.parent import Parent
from jobq.executors.process.place import Place, application_at, where
from jobq.executors.process.wire import Message
from jobq.registry import App


def load(hello: Message, parent: Parent) -> App:
    """The App. What cannot be imported is told to the worker, and ends this process."""
    _take_over_path(hello)
    try:
        return application_at(Place(hello["module"], hello["attribute"], tuple(hello["others"])))
    except BaseException as error:
        parent.tell({"is": "failed", "text": f"{type(error).__name__}: {error} ({where(error)})"})
        sys.exit(1)


def _take_over_path(hello: Message) -> None:
    """The worker's path; PYTHONPATH, which was for finding jobq, is the worker's own again."""
    sys.path[:] = hello["path"]
    if hello["pythonpath"] is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = hello["pythonpath"]
