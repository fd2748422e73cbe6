from __future__ import annotations

import gc
import sys
import typing
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ForwardRef, NewType, Optional

import pytest
from typing_extensions import TypeAliasType

from jobq.codec import Codec
from jobq.errors import ArgsError, RegistrationError

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

UserId = NewType("UserId", int)


def uses_later(x: Later) -> None: ...


CODEC_OF_LATER = Codec.of(uses_later)


@dataclass
class Later:
    value: int


def test_a_name_that_is_defined_later_is_resolved_at_the_first_enqueue() -> None:
    assert CODEC_OF_LATER.encode((Later(5),), {}) == '{"x":{"value":5}}'


def test_a_name_that_is_defined_later_is_resolved_at_the_first_claim_too() -> None:
    codec = Codec.of(uses_later)

    codec.resolve()
    codec.resolve()

    assert codec.decode('{"x":{"value":5}}') == {"x": Later(5)}


def uses_missing(to: str, x: Missing, y: bytes_like) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize("use", [lambda c: c.resolve(), lambda c: c.encode(("a",), {}), lambda c: c.decode("{}")])
def test_a_name_imported_for_type_checking_only_fails_by_name(use: Any) -> None:
    codec = Codec.of(uses_missing)

    with pytest.raises(RegistrationError) as caught:
        use(codec)

    assert str(caught.value).startswith("parameter 'x': name 'Missing' is not defined in test_codec_annotations (")
    assert "TYPE_CHECKING" in str(caught.value)
    assert "defined later in the same function" in str(caught.value)


def test_a_postponed_name_does_not_hide_what_can_never_work() -> None:
    def handler(x: Missing, y: bytes) -> None: ...

    with pytest.raises(RegistrationError, match=r"parameter 'y': bytes has no JSON form"):
        Codec.of(handler)


def test_the_return_annotation_is_never_looked_at() -> None:
    def handler(x: int) -> Missing: ...

    assert Codec.of(handler).encode((1,), {}) == '{"x":1}'


def test_types_of_the_function_around_are_known_by_its_locals() -> None:
    @dataclass
    class Item:
        name: str
        parts: list[Part]

    @dataclass
    class Part:
        whole: Item | None = None

    def handler(x: Item, y: Optional[Part] = None) -> None: ...  # noqa: UP045

    codec = Codec.of(handler, localns=locals())
    assert codec.decode(codec.encode((Item("a", [Part()]),), {})) == {"x": Item("a", [Part()])}


def test_a_type_defined_later_in_the_same_function_never_resolves() -> None:
    def handler(x: Item) -> None: ...

    codec = Codec.of(handler, localns=dict(locals()))

    @dataclass
    class Item:
        name: str

    with pytest.raises(RegistrationError, match="name 'Item' is not defined"):
        codec.resolve()


def test_a_postponed_codec_keeps_no_objects_of_the_function_around() -> None:
    class Heavy:
        pass

    def register() -> tuple[Codec, weakref.ref[Heavy]]:
        heavy = Heavy()

        def handler(x: Missing) -> None: ...

        return Codec.of(handler, localns=locals()), weakref.ref(heavy)

    codec, heavy = register()
    gc.collect()

    assert heavy() is None
    assert codec.parameters == ("x",)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("list['UserId']", [5]),
        (list["UserId"], [5]),
        (Optional["UserId"], 5),
        (ForwardRef("UserId"), 5),
        ("'UserId'", 5),
        (UserId, 5),
        (dict["str", "list[UserId]"], {"a": [1]}),
        (typing.Union["UserId", None, "str"], "a"),
        (typing.List["UserId"], [1]),  # noqa: UP006
    ],
)
def test_text_inside_of_annotations_is_evaluated(annotation: Any, value: Any) -> None:
    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = annotation
    codec = Codec.of(handler, localns={"UserId": UserId})

    assert codec.decode(codec.encode((value,), {})) == {"x": value}


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        ("1 +", "parameter 'x': the annotation '1 +' cannot be evaluated: "),
        ("int | 'str'", "cannot be evaluated: unsupported operand"),
        (5, "parameter 'x': 5 has no JSON form of its own"),
        ([int], "has no JSON form of its own"),
        (typing.Never, "Never has no JSON form of its own"),
    ],
)
def test_what_is_no_annotation_is_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert error in refusal(annotation)


def test_the_names_of_a_decorated_function_are_those_of_its_own_module() -> None:
    module = type(sys)("elsewhere")
    code = (
        "import functools\ndef wrap(f):\n    @functools.wraps(f)\n    def w(*a, **k): return f(*a, **k)\n    return w"
    )
    exec(code, vars(module))

    assert Codec.of(module.wrap(uses_later)).encode((Later(1),), {}) == '{"x":{"value":1}}'


ALIASES = """
type Ids = list[int]
type Swapped[A, B] = dict[B, list[A]]
type Json = str | int | bool | None | list[Json] | dict[str, Json]
type Tree[T] = T | list[Tree[T]]
type Unknown = list[Nowhere]
def handler(a: Ids, b: Swapped[int, str], c: Json, d: Tree[int], e: Ids | None = None) -> None: ...
def unknown(a: Unknown) -> None: ...
type Growing[T] = list[Growing[list[T]]]
def growing(a: Growing[int]) -> None: ...
def generic[T](x: T) -> None: ...
def lazy[T](x: 'T') -> None: ...
"""

if sys.version_info >= (3, 12):  # the syntax is from there on

    def test_type_aliases_are_what_they_stand_for() -> None:
        names: dict[str, Any] = {"__name__": "aliases"}
        exec(ALIASES, names)
        given = {"a": [1], "b": {"k": [2]}, "c": {"x": ["y", None, {"z": True}]}, "d": [1, [2, [3]]], "e": None}
        codec = Codec.of(names["handler"])

        assert codec.decode(codec.encode((), given)) == given
        with pytest.raises(RegistrationError, match="name 'Nowhere' is not defined in aliases"):
            Codec.of(names["unknown"]).resolve()
        with pytest.raises(RegistrationError, match="grows with each level"):
            Codec.of(names["growing"])
        for function in ("generic", "lazy"):
            with pytest.raises(RegistrationError, match="T is a type variable"):
                Codec.of(names[function])


Json = TypeAliasType("Json", "str | list[Json] | dict[str, Json] | None")


def test_a_recursive_type_alias_is_what_it_stands_for() -> None:
    def handler(x: Json) -> None: ...

    codec = Codec.of(handler)

    assert codec.decode(codec.encode(({"a": ["b", None]},), {})) == {"x": {"a": ["b", None]}}
    with pytest.raises(ArgsError, match=r"args\.x\.a\[0\]: expected .*, got int 5"):
        codec.encode(({"a": [5]},), {})
