"""What a handler reports while it runs: progress for people, checkpoints for its next attempt. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, TypeAlias

from jobq.codec.values import json_text
from jobq.describe import storable
from jobq.errors import ArgsError, OptionError, OptionTypeError

PROGRESS, CHECKPOINT = "progress", "checkpoint"  # keys of a job's meta
NAMES = frozenset({PROGRESS, CHECKPOINT})
LONGEST_MESSAGE = 200
MOST_BYTES = 64 * 1024  # of a checkpoint
ROUNDING = 1e-9  # a sum of fractions may come to 1.0000000000000002

Report: TypeAlias = Callable[[str, str], None]  # one of NAMES, and its JSON text


def ignore(name: str, text: str) -> None:
    """Where reports go when nobody keeps them."""


def progress_json(fraction: float, message: str, *, attempt: int) -> str:
    """Raises: OptionTypeError; OptionError, for a fraction outside of 0 to 1. A long message is cut."""
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        raise OptionTypeError(f"fraction: expected a number from 0 to 1, got {type(fraction).__name__}")
    if not isinstance(message, str):
        raise OptionTypeError(f"message: expected str, got {type(message).__name__}")
    if not isfinite(fraction) or not -ROUNDING <= fraction <= 1 + ROUNDING:
        raise OptionError(f"fraction: expected 0 to 1, got {fraction}")
    bounded = min(max(float(fraction), 0.0), 1.0)
    text = message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}\u2026"
    told = {"fraction": bounded, "message": storable(str.__str__(text)), "attempt": attempt}
    return json.dumps(told, ensure_ascii=False)


def checkpoint_json(state: Mapping[str, Any]) -> str:
    """Raises: ArgsError, which names the place, for what is no JSON object or longer than 64 KiB."""
    if not isinstance(state, Mapping):
        raise ArgsError(CHECKPOINT, f"expected a dict, got {type(state).__name__}")
    return json_text(state if isinstance(state, dict) else dict(state), path=CHECKPOINT, most_bytes=MOST_BYTES)


def merged(reports: Mapping[str, str]) -> str:
    """The JSON text of an object with each report under its name."""
    return "{" + ",".join(f'"{name}":{text}' for name, text in reports.items()) + "}"
