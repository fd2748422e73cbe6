"""Importing the application in a child, as its worker has done it."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

from jobq.child.parent import Parent
from jobq.executors.process.wire import Message
from jobq.registry import App


def load(hello: Message, parent: Parent) -> App:
    """The App. What cannot be imported is told to the worker, and ends this process."""
    _take_over_path(hello)
    try:
        app: Any = importlib.import_module(hello["module"])
        for name in hello["attribute"].split("."):
            app = getattr(app, name)
        for module in hello["others"]:
            importlib.import_module(module)
        if not isinstance(app, App):
            raise TypeError(f"it is of type {type(app).__name__}, not a jobq.App")
        app.resolve()
    except BaseException as error:
        parent.tell({"is": "failed", "text": f"{type(error).__name__}: {error} ({_where(error)})"})
        sys.exit(1)
    return app


def _take_over_path(hello: Message) -> None:
    """The worker's path; PYTHONPATH, which was for finding jobq, is the worker's own again."""
    sys.path[:] = hello["path"]
    if hello["pythonpath"] is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = hello["pythonpath"]


def _where(error: BaseException) -> str:
    """The line that failed, the deepest."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"
