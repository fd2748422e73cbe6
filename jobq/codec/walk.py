"""The walks over values: where is the one that JSON, jsonb or a worker could not take?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from jobq.codec.form import Misfit, short, step

MAX_DEPTH = 100
MAX_DIGITS = 4300  # Python's own limit for text to int: a worker could not read more
INT_BOUND: int = 10**MAX_DIGITS


def inspect_tree(tree: Any, depth: int = 0) -> None:
    """Raise the Misfit of the first value in `tree` that jsonb, or a worker, could not take."""
    if isinstance(tree, str):
        inspect_text(tree)
    elif isinstance(tree, float):
        inspect_float(tree)
    elif isinstance(tree, int):
        inspect_int(tree)
    elif isinstance(tree, dict | list):
        if depth > MAX_DEPTH:
            raise Misfit(f"nested more than {MAX_DEPTH} deep")
        inspect_items(tree, depth + 1)


def inspect_items(container: dict[str, Any] | list[Any], depth: int) -> None:
    if isinstance(container, dict):
        for key in container:
            inspect_text(key, f"key {short(key)}: ")
    for place, item in steps_of(container):
        try:
            inspect_tree(item, depth)
        except Misfit as misfit:
            misfit.steps.append(place)
            raise


def inspect_text(value: str, what: str = "") -> None:
    if "\0" in value:
        raise Misfit(f"{what}NUL character, jsonb cannot hold it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Misfit(f"{what}lone surrogate {short(value[error.start])}, jsonb cannot hold it") from None


def inspect_float(value: float) -> None:
    if not isfinite(value):
        raise Misfit(f"{value} has no JSON form")


def inspect_int(value: int) -> None:
    if not -INT_BOUND < value < INT_BOUND:
        raise Misfit(f"int of more than {MAX_DIGITS} digits, Python does not read it back")


def steps_of(container: Mapping[str, Any] | Sequence[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(container, Mapping):
        return ((step(key), item) for key, item in container.items())
    return ((f"[{index}]", item) for index, item in enumerate(container))
