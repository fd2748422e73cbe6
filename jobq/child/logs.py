"""Logging in a child: records go to the worker, which knows where logs go."""

from __future__ import annotations

import logging
from typing import Any

from jobq.child.parent import Parent

LONGEST_TEXT = 100_000
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_worker(parent: Parent, level: int) -> None:
    """The root logger's records from the worker's own level on. An application may set up logging itself, after this:
    what it writes to stderr is logged by the worker too."""
    root = logging.getLogger()
    root.addHandler(ToWorker(parent))
    root.setLevel(level)
    logging.captureWarnings(True)


class ToWorker(logging.Handler):
    """Sends each record as text, with its `extra` fields that are plain values."""

    def __init__(self, parent: Parent) -> None:
        super().__init__()
        self._parent = parent
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._parent.tell({"is": "log", **self._fields(record)})
        except Exception:
            self.handleError(record)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        trouble = self._formatter.formatException(record.exc_info) if record.exc_info else None
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD and _is_plain(value)}
        return {
            "name": record.name,
            "level": record.levelno,
            "text": record.getMessage()[:LONGEST_TEXT],
            "created": record.created,
            "trouble": trouble and trouble[:LONGEST_TEXT],
            "extra": extra,
        }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
