"""The form of A | B: at enqueue the first arm that takes the value, at claim the arm of the JSON type."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from types import NoneType
from typing import Any

from jobq.codec.exact import exact_float
from jobq.codec.form import Form, Misfit, Mismatch, Unfit
from jobq.codec.plain import ANY, FLOAT, INT, NONE

NUMBERS = (INT, FLOAT)  # the one pair of a shape that stays apart, or equal
READ_AS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (NoneType,),
    "array": (list,),
    "object": (dict,),
}


def union_form(arms: list[Form]) -> Form:
    if ANY in arms and all(arm is ANY or arm is NONE for arm in arms):
        return ANY
    if any(arm is not NONE and "null" in arm.shapes for arm in arms):
        arms = [arm for arm in arms if arm is not NONE]  # an alias that allows None already
    arms = list(dict.fromkeys(arms))
    for first, second in combinations(arms, 2):
        refuse_one_shape(first, second)
    if len(arms) == 1:
        return arms[0]
    if len(arms) == 2 and NONE in arms:
        return optional_form(next(arm for arm in arms if arm is not NONE))
    return form_of_several(arms)


def refuse_one_shape(first: Form, second: Form) -> None:
    shared = sorted(first.shapes & second.shapes)
    if shared and not (first in NUMBERS and second in NUMBERS):
        raise Unfit(f"{first.name} | {second.name}: both are a JSON {shared[0]}, a worker could not tell them apart")


def optional_form(arm: Form) -> Form:
    """T | None, the commonest union by far; errors inside of T keep their path."""
    encode_value, decode_value = arm.encode, arm.decode

    def encode(value: Any) -> Any:
        return None if value is None else encode_value(value)

    def decode(value: Any) -> Any:
        return None if value is None else decode_value(value)

    return Form(f"{arm.name} | None", arm.shapes | NONE.shapes, encode, decode, arm.nests, arm.python)


def form_of_several(arms: list[Form]) -> Form:
    name = " | ".join(arm.name for arm in arms)
    encodes = encoders_in_order(arms)
    decodes = decoders_by_type(arms)

    def encode(value: Any) -> Any:
        specific: Misfit | None = None
        for encode_arm in encodes:
            try:
                return encode_arm(value)
            except Misfit as misfit:
                specific = misfit if misfit.is_specific else specific
        raise specific or Mismatch(name, value)

    def decode(value: Any) -> Any:
        decode_arm = decodes.get(type(value))
        if decode_arm is None:
            raise Mismatch(name, value)
        return decode_arm(value)

    shapes = frozenset[str]().union(*(arm.shapes for arm in arms))
    return Form(name, shapes, encode, decode, any(arm.nests for arm in arms))


def encoders_in_order(arms: list[Form]) -> list[Callable[[Any], Any]]:
    """As written, but int before float: float takes an int too, and would make 5 a 5.0."""
    if not all(number in arms for number in NUMBERS):
        return [arm.encode for arm in arms]
    return [*(arm.encode for arm in arms if arm != FLOAT), encode_float_beside_int]


def encode_float_beside_int(value: Any) -> float | int:
    return exact_float(FLOAT.encode(value))


def decoders_by_type(arms: list[Form]) -> dict[type, Callable[[Any], Any]]:
    decodes = {kind: arm.decode for arm in arms for shape in arm.shapes for kind in READ_AS[shape]}
    if all(number in arms for number in NUMBERS):
        decodes |= {int: INT.decode, float: FLOAT.decode}
    return decodes
