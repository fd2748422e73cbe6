"""The forms of pydantic models and msgspec structs: their own library is asked about them, and about nothing else.

Neither is imported here: an annotation that is such a class has imported it already. So installing one of them
changes nothing for the handlers that do not use it, and web and worker agree.

A model must survive its own JSON, which is tried at enqueue (about 5 us): else a SecretStr would arrive as
`**********`, a field with exclude=True as its default, NaN as null, all without a word. Errors name fields, never
values.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from jobq.codec.exact import exact_float
from jobq.codec.form import Form, Misfit, Mismatch, Unfit, Unresolved, step
from jobq.codec.text import ENCODER

OBJECT = frozenset({"object"})
OF_ROOT_MODEL = frozenset({"string", "number", "boolean", "array", "object"})


# For the fields of a model that take Any; for a field that is a float it makes no difference.
EXACT_DECODER = json.JSONDecoder(parse_float=lambda text: exact_float(float(text)))


@dataclass(frozen=True, slots=True)
class Library:
    """What a model's library does: `dump` a value to JSON text, `load` it; both raise only Misfit."""

    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]


def is_pydantic(annotation: Any) -> bool:
    base = getattr(sys.modules.get("pydantic.main"), "BaseModel", None)
    if not isinstance(annotation, type) or base is None:
        return False
    return issubclass(annotation, base) or "__pydantic_validator__" in vars(annotation)  # or a pydantic dataclass


def is_struct(annotation: Any) -> bool:
    base = getattr(sys.modules.get("msgspec"), "Struct", None)
    return base is not None and isinstance(annotation, type) and issubclass(annotation, base)


def models_form(classes: tuple[type[Any], ...]) -> Form:
    """The form of one model, or of a union of models of one library."""
    library = pydantic_library(classes) if is_pydantic(classes[0]) else msgspec_library(classes)
    name = " | ".join(cls.__name__ for cls in classes)

    def encode(value: Any) -> Any:
        if type(value) not in classes:
            raise Mismatch(name, value)
        text = library.dump(value)
        refuse_loss(value, library.load(text), library.dump, text)
        return tree_of(text)

    def decode(value: Any) -> Any:
        return library.load(text_of(value))

    shapes = frozenset[str]().union(*map(shapes_of, classes))
    return Form(name, shapes, encode, decode, nests=True)


def shapes_of(cls: type[Any]) -> frozenset[str]:
    if getattr(cls, "__pydantic_root_model__", False):
        return OF_ROOT_MODEL
    config = getattr(cls, "__struct_config__", None)
    return frozenset({"array"}) if config is not None and config.array_like else OBJECT


def text_of(tree: Any) -> bytes:
    """JSON again, as validation of JSON has rules of its own (a UUID is text there)."""
    try:
        return ENCODER.encode(tree).encode(errors="surrogatepass")
    except (ValueError, RecursionError) as error:
        raise Misfit(f"not readable as JSON: {error}") from None


def tree_of(text: bytes) -> Any:
    try:
        tree = EXACT_DECODER.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise Misfit(f"its JSON is not readable: {error}") from None
    if tree is None:
        raise Misfit("a model that is null in JSON could not be told from None")
    return tree


def refuse_loss(value: Any, back: Any, dump: Callable[[Any], bytes], text: bytes) -> None:
    if type(back) is not type(value):
        raise Misfit(f"{type(value).__name__} does not survive its own JSON, it arrives as {type(back).__name__}")
    if back == value or (compares_by_identity(type(value)) and dump(back) == text):
        return
    misfit = Misfit("does not survive its own JSON (a secret, an excluded or private field, NaN?)")
    misfit.steps.extend(step(name) for name in changed_fields(value, back)[:1])
    raise misfit


def compares_by_identity(cls: Any) -> bool:
    return cls.__eq__ is object.__eq__ or getattr(getattr(cls, "__struct_config__", None), "eq", True) is False


def changed_fields(value: Any, back: Any) -> list[str]:
    names = getattr(type(value), "__struct_fields__", None) or vars(value)
    return [name for name in names if getattr(value, name) != getattr(back, name)]


def pydantic_library(classes: tuple[type[Any], ...]) -> Library:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.version import version_short

    if tuple(int(part) for part in version_short().split(".")) < (2, 11):
        raise Unfit(f"{classes[0].__name__}: pydantic {version_short()} is too old, 2.11 or newer is needed")
    for cls in classes:
        complete(cls)
    adapter: TypeAdapter[Any] = TypeAdapter(reduce(or_, classes))

    def dump(value: Any) -> bytes:
        try:
            # by field name, read back by name or alias: aliases of every kind survive
            return adapter.dump_json(value, by_alias=False, round_trip=True, warnings="error")
        except Exception as error:
            raise Misfit(f"{type(value).__name__} has no JSON form: {first_line(error)}") from None

    def load(text: bytes) -> Any:
        try:
            return adapter.validate_json(text, by_alias=True, by_name=True)
        except ValidationError as error:
            raise misfit_of(error) from None
        except Exception as error:
            raise Misfit(f"refused by its validator: {type(error).__name__}: {first_line(error)}") from error

    return Library(dump, load)


def complete(cls: Any) -> None:
    """A model that names classes defined after it is completed now; before they exist it is postponed."""
    if not getattr(cls, "__pydantic_complete__", True):
        rebuild = getattr(cls, "model_rebuild", None)
        if rebuild is None or not rebuild(raise_errors=False):
            raise Unresolved(f"{cls.__name__} is not fully defined, one of its annotations names an unknown class")


def misfit_of(error: Any) -> Misfit:
    """The first of a ValidationError's errors. Its own text holds the input, which may be a secret."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    misfit = Misfit(first["msg"])
    misfit.steps.extend(f"[{part}]" if isinstance(part, int) else step(part) for part in reversed(first["loc"]))
    return misfit


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def msgspec_library(classes: tuple[type[Any], ...]) -> Library:
    import msgspec

    encoder = msgspec.json.Encoder()
    try:
        decoder: Any = msgspec.json.Decoder(reduce(or_, classes))
    except NameError as error:
        raise Unresolved(f"{classes[0].__name__}: {error}") from error
    except TypeError as error:
        raise Unfit(f"{classes[0].__name__}: {first_line(error)}") from error

    def dump(value: Any) -> bytes:
        try:
            return encoder.encode(value)
        except Exception as error:
            raise Misfit(f"{type(value).__name__} has no JSON form: {first_line(error)}") from None

    def load(text: bytes) -> Any:
        try:
            return decoder.decode(text)
        except Exception as error:
            raise Misfit(first_line(error)) from None

    return Library(dump, load)
