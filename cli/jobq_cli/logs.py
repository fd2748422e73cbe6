"""The log of a worker's process, on stderr: as text for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from jobq.masking import mask, mask_all
from jobq_cli.text import printable, printable_lines

# They log statements with their values, or speak of every revision: never wanted in a worker's log.
QUIET = ("sqlalchemy", "alembic", "asyncio")
STDERR = 2
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogForm(StrEnum):
    """What a log line looks like."""

    TEXT = "text"
    JSON = "json"


class Level(StrEnum):
    """From which level on records are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def set_up(form: LogForm, level: Level) -> None:
    """Send every logger's records to stderr; an application that sets up logging itself, when imported, still may."""
    handler = StderrHandler()
    handler.setFormatter(JsonFormatter() if form is LogForm.JSON else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper())
    logging.captureWarnings(True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class StderrHandler(logging.StreamHandler[Any]):
    """The standard error of this process, also after somebody has closed `sys.stderr`; no trouble with it is raised."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        with suppress(Exception):
            if self.stream.closed:
                self.stream = open(STDERR, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
                self.emit(record)
            else:
                super().handleError(record)


class TextFormatter(logging.Formatter):
    """`2026-03-01 12:00:05.123Z INFO message`; other loggers than jobq's are named. Control characters are escaped.

    The secret arguments of the jobs that run here are masked, whoever logs them.
    """

    def format(self, record: logging.LogRecord) -> str:
        name = "" if record.name.partition(".")[0] == "jobq" else f"{record.name}: "
        at = f"{_at(record):%Y-%m-%d %H:%M:%S}.{int(record.msecs):03d}Z"
        line = printable(f"{at} {record.levelname:<7} {name}{mask(record.getMessage())}")
        return "\n".join([line, *(f"  {each}" for each in printable_lines(_trouble(record)) if each)])


class JsonFormatter(logging.Formatter):
    """An object with at, level, logger, message, every `extra` field, and `exception` as text; ASCII, one line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: mask_all(value) for name, value in vars(record).items() if name not in _STANDARD}
        fields |= {
            "at": _at(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
        }
        if trouble := _trouble(record):
            fields["exception"] = trouble
        return _one_line(fields)


def _at(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _trouble(record: logging.LogRecord) -> str:
    """The exception and the stack of a record, where it has them."""
    formatter = logging.Formatter()
    parts = [formatter.formatException(record.exc_info)] if record.exc_info and record.exc_info[1] else []
    parts += [record.stack_info] if record.stack_info else []
    return mask("\n".join(parts))


def _one_line(fields: dict[str, Any]) -> str:
    try:
        text = json.dumps(fields, default=_text, allow_nan=False)
    except Exception:
        text = json.dumps({name: _plain(value) for name, value in fields.items()})
    return text.replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    """What the application puts into a record may be anything: NaN, a cycle, odd keys, an object without a text."""
    try:
        json.dumps(value, allow_nan=False)
        return value
    except Exception:
        return _repr(value)


def _text(value: Any) -> str:
    return mask(str(value))


def _repr(value: Any) -> str:
    try:
        return mask(repr(value))
    except Exception:
        return object.__repr__(value)
