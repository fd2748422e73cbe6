"""The forms of a choice: Enum (a member travels as its value) and Literal (type and value count: True is not 1)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, Flag
from typing import Any, get_args

from jobq.codec.form import Form, Mismatch, Unfit, short, spell

SHAPE_OF = {str: "string", int: "number", bool: "boolean", type(None): "null"}


def enum_form(cls: type[Enum]) -> Form:
    values = {member._value_: member for member in cls}
    if not values and not issubclass(cls, Flag):
        raise Unfit(f"{spell(cls)} has no members")
    for value in values:
        if type(value) is not str and type(value) is not int:
            raise Unfit(f"{spell(cls)}: only str and int values travel, not {type(value).__name__} {short(value)}")

    def encode(member: Any) -> Any:
        if not isinstance(member, cls):
            raise Mismatch(f"a member of {cls.__name__}", member)
        return member._value_

    def decode(value: Any) -> Any:
        if type(value) is str or type(value) is int:
            member = values[value] if value in values else combination(cls, value)
            if member is not None:
                return member
        raise Mismatch(f"a value of {cls.__name__}", value)

    shapes = frozenset(SHAPE_OF[type(value)] for value in values) or SHAPES_OF_FLAG
    return Form(cls.__name__, shapes, encode, decode, python=cls)


SHAPES_OF_FLAG = frozenset({"number"})


def combination(cls: type[Enum], value: Any) -> Enum | None:
    """A Flag's value may be that of several members; another Enum's `_missing_` is not asked."""
    if not issubclass(cls, Flag) or type(value) is not int:
        return None
    try:
        member = cls(value)
    except ValueError:
        return None
    return member if member._value_ == value else None  # -1 would be "all but none"


def literal_form(annotations: Iterable[Any]) -> Form:
    """The one form of a Literal, or of several in a union."""
    choices = [choice for annotation in annotations for choice in get_args(annotation)]
    sent = {(type(choice), choice): literal_value(choice) for choice in choices}
    read = {(type(value), value): choice for (_, choice), value in sent.items()}
    name = f"Literal[{', '.join(spell_choice(choice) for _, choice in sent)}]"
    if len(read) < len(sent):
        raise Unfit(f"{name}: two of its values look the same in JSON, a worker could not tell them apart")

    def encode(value: Any) -> Any:
        try:
            return sent[type(value), value]
        except (KeyError, TypeError):  # TypeError: not hashable
            raise Mismatch(name, value) from None

    def decode(value: Any) -> Any:
        try:
            return read[type(value), value]
        except (KeyError, TypeError):
            raise Mismatch(name, value) from None

    values = tuple(value for _, value in read)
    return Form(name, frozenset(SHAPE_OF[kind] for kind, _ in read), encode, decode, python=values)


def literal_value(choice: Any) -> Any:
    value = choice._value_ if isinstance(choice, Enum) else choice
    if type(value) not in SHAPE_OF:
        raise Unfit(f"Literal[{short(choice)}]: {type(value).__name__} has no JSON form")
    return value


def spell_choice(choice: Any) -> str:
    return str(choice) if isinstance(choice, Enum) else short(choice)
