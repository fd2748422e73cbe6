"""What cannot be a handler's parameter, and the way out."""

from __future__ import annotations

from typing import Any, NoReturn, get_origin

from jobq.codec.form import Unfit, short, spell

CHECKING_LIBRARIES = frozenset({"pydantic", "pydantic_core", "annotated_types", "msgspec"})
WAYS_OUT = {
    "bytes": "pass base64 in a str, or store it and pass its key",
    "bytearray": "pass base64 in a str, or store it and pass its key",
    "memoryview": "pass base64 in a str, or store it and pass its key",
    "Callable": "pass a name in a str",
    "Path": "pass a str",
    "time": "pass a str, or a timedelta since midnight",
    "complex": "pass two floats",
    "Iterable": "use Sequence",
    "Collection": "use Sequence",
    "Iterator": "use Sequence",
    "MutableSequence": "use list",
    "deque": "use list",
    "Set": "use frozenset",
    "MutableSet": "use set",
    "MutableMapping": "use dict",
    "defaultdict": "use dict",
    "OrderedDict": "use dict (jsonb does not keep the order of keys)",
    "Counter": "use dict",
}
IN_GENERAL = "use a dataclass, a TypedDict or a model, or pass its key"


def refuse_class(cls: type[Any]) -> None:
    """Entities of an ORM are dataclasses or models at times, and would arrive as copies that no session knows."""
    if hasattr(cls, "__mapper__"):
        raise Unfit(f"{spell(cls)} is an ORM entity: pass its primary key and load it in the handler")


def refuse_other(annotation: Any) -> NoReturn:
    origin = get_origin(annotation) or annotation
    way_out = WAYS_OUT.get(getattr(origin, "__name__", ""), IN_GENERAL)
    raise Unfit(f"{spell(annotation)} has no JSON form of its own: {way_out}")


def refuse_constraints(metadata: tuple[Any, ...]) -> None:
    for item in metadata:
        cls = item if isinstance(item, type) else type(item)
        if cls.__module__.partition(".")[0] in CHECKING_LIBRARIES:
            raise Unfit(f"Annotated with {short(item)}: it would not be checked; put it in a model")
