"""Values without an annotation: JSON's own types alone, exactly, as nothing says what else they should become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from jobq.codec.form import Misfit, describe, short, step
from jobq.codec.walk import MAX_DEPTH, inspect_int

WRITTEN_OUT = 1e16  # from here on Python writes a float as 1e+16, and jsonb gives that back as an integer


def exact_float(value: float) -> float | int:
    """7.205759403792251e+16 would come back as 72057594037922510, an integer of another value: send the equal one."""
    return int(value) if abs(value) >= WRITTEN_OUT and isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Exact:
    """What is taken, and what the error advises. `tuples` go as arrays."""

    hint: str
    tuples: bool = False

    def encode(self, value: Any, depth: int = 1) -> Any:
        """A copy that jsonb gives back equal."""
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if kind is int:
            inspect_int(value)
            return value
        if kind is float:
            return exact_float(value)
        if kind is dict or kind is list or (kind is tuple and self.tuples):
            if depth > MAX_DEPTH:
                raise Misfit(f"nested more than {MAX_DEPTH} deep")
            return self.encode_object(value, depth) if kind is dict else self.encode_array(value, depth)
        raise Misfit(f"{describe(value)} is not a JSON value; {self.hint}")

    def encode_array(self, value: Iterable[Any], depth: int) -> list[Any]:
        out: list[Any] = []
        try:
            for item in value:
                out.append(self.encode(item, depth + 1))  # noqa: PERF401 - its length is the step of a Misfit
        except Misfit as misfit:
            misfit.steps.append(f"[{len(out)}]")
            raise
        return out

    def encode_object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise Misfit(f"key {short(key)}: expected str, got {type(key).__name__}")
            try:
                out[key] = self.encode(item, depth + 1)
            except Misfit as misfit:
                misfit.steps.append(step(key))
                raise
        return out
