"""The forms of classes with named fields: dataclasses and TypedDicts. Both are JSON objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

from jobq.codec.annotations import own_annotations, owner_of, signature_of
from jobq.codec.form import Compiles, Form, Misfit, Mismatch, Unfit, short, step

OBJECT = frozenset({"object"})
QUALIFIERS = frozenset({"Required", "NotRequired", "ReadOnly", "Final"})


def dataclass_form(cls: type[Any], compiler: Compiles) -> Form:
    """Exactly that class: a subclass would lose its fields. At claim defaults fill what is missing."""
    fields = dataclasses.fields(cls)
    refuse_dataclass(cls, fields)
    forms = {field.name: field_form(cls, field.name, field.type, compiler)[0] for field in fields}
    encodes = {name: form.encode for name, form in forms.items()}
    decodes = {name: form.decode for name, form in forms.items()}
    required = {field.name for field in fields if not has_default(field)}

    def encode(value: Any) -> Any:
        if type(value) is not cls:
            raise Mismatch(cls.__name__, value)
        try:
            return convert_fields({name: getattr(value, name) for name in encodes}, encodes, required)
        except AttributeError as error:
            raise Misfit(f"a field is not set: {error}") from error

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(cls.__name__, value)
        return build(cls, convert_fields(value, decodes, required))

    return Form(cls.__name__, OBJECT, encode, decode, any(form.nests for form in forms.values()))


def refuse_dataclass(cls: type[Any], fields: tuple[dataclasses.Field[Any], ...]) -> None:
    if getattr(cls, "__parameters__", ()):
        raise Unfit(f"{cls.__name__} has type variables, a worker needs the types themselves")
    if lost := [field.name for field in fields if not field.init]:
        raise Unfit(f"{cls.__name__}.{lost[0]}: a field with init=False could not be given back")
    if others := set(signature_of(cls).parameters) ^ {field.name for field in fields}:
        raise Unfit(f"{cls.__name__}: its __init__ and its fields differ in {sorted(others)[0]!r} (an InitVar?)")


def has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def build(cls: type[Any], fields: dict[str, Any]) -> Any:
    try:
        return cls(**fields)
    except Exception as error:
        raise Misfit(f"{cls.__name__} refuses it: {type(error).__name__}: {error}") from error


def typed_dict_form(cls: type[Any], compiler: Compiles) -> Form:
    """A mapping with exactly these keys; NotRequired ones may be missing on both sides."""
    if getattr(cls, "__parameters__", ()):
        raise Unfit(f"{cls.__name__} has type variables, a worker needs the types themselves")
    forms: dict[str, Form] = {}
    required: set[str] = set()
    for name, annotation in own_annotations(cls).items():
        forms[name], qualifiers = field_form(cls, name, annotation, compiler)
        # __required_keys__ does not see the qualifiers of annotations that are text
        if "Required" in qualifiers or (name in cls.__required_keys__ and "NotRequired" not in qualifiers):
            required.add(name)
    encodes = {name: form.encode for name, form in forms.items()}
    decodes = {name: form.decode for name, form in forms.items()}

    def encode(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Mismatch(cls.__name__, value)
        return convert_fields(value, encodes, required)

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(cls.__name__, value)
        return convert_fields(value, decodes, required)

    return Form(cls.__name__, OBJECT, encode, decode, any(form.nests for form in forms.values()))


def field_form(cls: type[Any], name: str, annotation: Any, compiler: Compiles) -> tuple[Form, set[str]]:
    """The form of a field, and the qualifiers (NotRequired, ReadOnly...) around its annotation."""
    inner = compiler.inside(owner_of(cls, name))
    qualifiers: set[str] = set()
    try:
        annotation = inner.evaluate(annotation)
        while (qualifier := getattr(get_origin(annotation), "_name", None)) in QUALIFIERS:
            qualifiers.add(qualifier)
            annotation = inner.evaluate(get_args(annotation)[0])
        return inner.form(annotation), qualifiers
    except Unfit as reason:
        raise Unfit(f"{cls.__name__}.{name}: {reason}") from reason


def convert_fields(
    value: Mapping[Any, Any], converts: Mapping[str, Callable[[Any], Any]], required: set[str]
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, item in value.items():
        convert = converts.get(name)
        if convert is None:
            raise Misfit(f"unknown field {short(name)} (known: {', '.join(converts)})")
        try:
            out[name] = convert(item)
        except Misfit as misfit:
            misfit.steps.append(step(name))
            raise
    if missing := required.difference(out):
        raise Misfit(f"field {sorted(missing)[0]!r} is missing")
    return out
