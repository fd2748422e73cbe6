"""The forms of containers: list, Sequence, tuple, set, frozenset, dict, Mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jobq.codec.form import Form, Misfit, Mismatch, Unfit, short, step
from jobq.codec.text import dump

ARRAY = frozenset({"array"})


def each(convert: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Every item converted; a Misfit gets the index as its step."""
    out: list[Any] = []
    try:
        out.extend(map(convert, items))  # twice as fast as a loop; keeps what was converted before a Misfit
    except Misfit as misfit:
        misfit.steps.append(f"[{len(out)}]")
        raise
    return out


def array_form(name: str, item: Form, takes: Any, gives: Callable[[Any], Any] | None) -> Form:
    """list (takes a list), Sequence (list or tuple, never a str; arrives as a list) and tuple[T, ...]."""

    def encode(value: Any) -> Any:
        if not isinstance(value, takes):
            raise Mismatch(name, value)
        return each(item.encode, value)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(name, value)
        items = each(item.decode, value)
        return items if gives is None else gives(items)

    return Form(name, ARRAY, encode, decode, item.nests)


def fixed_tuple_form(items: list[Form]) -> Form:
    name = f"tuple[{', '.join(item.name for item in items) or '()'}]"

    def convert(value: Any, converts: list[Callable[[Any], Any]]) -> list[Any]:
        if len(value) != len(converts):
            raise Misfit(f"expected {len(converts)} items, got {len(value)}")
        pairs = zip(converts, value, strict=True)
        return each(lambda pair: pair[0](pair[1]), pairs)

    encodes = [item.encode for item in items]
    decodes = [item.decode for item in items]

    def encode(value: Any) -> Any:
        if not isinstance(value, tuple):
            raise Mismatch(name, value)
        return convert(value, encodes)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(name, value)
        return tuple(convert(value, decodes))

    return Form(name, ARRAY, encode, decode, any(item.nests for item in items))


def set_form(item: Form, cls: type[set[Any]] | type[frozenset[Any]]) -> Form:
    """An array sorted by JSON text: unsorted, equal arguments would have another text in each process."""
    name = f"{cls.__name__}[{item.name}]"

    def sort_key(tree: Any) -> str:
        return dump(tree, nests=False)

    def encode(value: Any) -> Any:
        if not isinstance(value, cls):
            raise Mismatch(name, value)
        return sorted([encode_element(item, element) for element in value], key=sort_key)

    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(name, value)
        items = each(item.decode, value)
        try:
            return cls(items)
        except TypeError:
            raise Misfit("an element that cannot be in a set (a list or an object)") from None

    return Form(name, ARRAY, encode, decode, item.nests)


def encode_element(item: Form, element: Any) -> Any:
    try:
        return item.encode(element)
    except Misfit as misfit:
        misfit.steps.append(f"[{short(element)}]")  # an element of a set has no index
        raise


def mapping_form(name: str, key: Form, item: Form, takes: type[Any]) -> Form:
    if key.shapes != {"string"}:
        raise Unfit(f"{name}: keys must be text in JSON (str, UUID, date, a str Enum or Literal), not {key.name}")

    def encode(value: Any) -> Any:
        if not isinstance(value, takes):
            raise Mismatch(name, value)
        return convert(value, key.encode, item.encode)

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(name, value)
        return convert(value, key.decode, item.decode)

    return Form(name, frozenset({"object"}), encode, decode, item.nests)


def convert(
    value: Mapping[Any, Any], convert_key: Callable[[Any], Any], convert_item: Callable[[Any], Any]
) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for name, item in value.items():
        converted = converted_key(convert_key, name)
        try:
            out[converted] = convert_item(item)
        except Misfit as misfit:
            misfit.steps.append(step(name))
            raise
    if len(out) < len(value):
        raise Misfit("two keys have the same text in JSON")
    return out


def converted_key(convert_key: Callable[[Any], Any], key: Any) -> Any:
    try:
        return convert_key(key)
    except Misfit as misfit:
        raise Misfit(f"key {short(key)}: {misfit.problem}") from None
