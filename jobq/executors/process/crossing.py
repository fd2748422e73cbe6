"""How a job and its end cross between a worker and a child. Pure, and the same code on both sides."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from jobq.describe import describe, message_of, storable
from jobq.executors.process.remote import rebuilt
from jobq.executors.process.wire import Message
from jobq.model import Claimed
from jobq.outcomes import Fail, Ok, Outcome, Skip
from jobq.pausing import status_of
from jobq.verdict import Ended

LONGEST_TEXT = 1_000_000  # the settler cuts what it stores much shorter; this bounds what crosses
MOST_CLASSES = 50
MOST_ATTRIBUTES = 50
TIMES = ("run_at", "created_at", "claimed_at")
OUTCOMES: dict[str, type[Outcome]] = {kind.word: kind for kind in (Ok, Fail, Skip)}


def job_to_wire(job: Claimed) -> Message:
    """A claimed row."""
    row = job._asdict()
    return {**row, **{name: row[name].isoformat() for name in TIMES}}


def job_from_wire(row: Message) -> Claimed:
    return Claimed(**{**row, **{name: datetime.fromisoformat(row[name]) for name in TIMES}})


def end_to_wire(ended: Ended) -> Message:
    """How a handler ended; an exception as its description."""
    if ended.error is not None:
        return {"error": _described(ended.error)}
    value = ended.value
    if isinstance(value, Outcome):
        return {"word": value.word, "text": _cut(value.text), "result": getattr(value, "result_json", None)}
    return {"text": None if value is None else _cut(str(value))}


def end_from_wire(message: Message) -> Ended:
    if "error" in message:
        return Ended(error=rebuilt(**message["error"]))
    if "word" in message:
        return Ended(_outcome(**message))
    return Ended(message["text"])


def _outcome(word: str, text: str, result: str | None) -> Outcome:
    return OUTCOMES[word](text, result=None if result is None else json.loads(result))


def _described(error: BaseException) -> Message:
    """Its classes by their names, its text, its traceback as text, and its attributes that are plain values."""
    told = describe(error, attempt=0, worker="")
    true = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
    return {
        "classes": [[kind.__module__, kind.__qualname__] for kind in type(true).__mro__[:MOST_CLASSES]],
        "message": _cut(message_of(error)),
        "traceback": told["traceback"],
        "args": _plain_args(true),
        "attributes": _plain_attributes(true),
        "status": status_of(true),
    }


def _plain_args(error: BaseException) -> list[Any] | None:
    """None where they cannot cross."""
    args = BaseException.__getattribute__(error, "args")
    return [_cut_value(value) for value in args] if all(_is_plain(value) for value in args[:100]) else None


def _plain_attributes(error: BaseException) -> dict[str, Any]:
    attributes = BaseException.__getattribute__(error, "__dict__")
    plain = {name: _cut_value(value) for name, value in attributes.items() if type(name) is str and _is_plain(value)}
    spans = {name: {"seconds": value.total_seconds()} for name, value in attributes.items() if type(value) is timedelta}
    return dict(list({**plain, **spans}.items())[:MOST_ATTRIBUTES])


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (str, bool, float) or (type(value) is int and abs(value) < 1 << 63)


def _cut_value(value: Any) -> Any:
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else storable(str.__str__(text), LONGEST_TEXT)
