from __future__ import annotations

import dataclasses
import typing
from collections import ChainMap
from dataclasses import InitVar, dataclass, field
from typing import Any, Generic, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import pytest
import typing_extensions

from jobq.errors import ArgsError

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    sku: str
    count: int = 1


@dataclass
class Order:
    number: int
    lines: list[Line]
    note: str | None = None
    tags: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class BigLine(Line):
    weight: float = 0.0


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Positive:
    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise ValueError("not positive")


class Address(TypedDict):
    street: str
    zip: NotRequired[str]


class Loose(TypedDict, total=False):
    street: Required[str]
    note: str


class Extended(Address):
    line: Line


class ReadOnlyAddress(typing_extensions.TypedDict):
    street: typing_extensions.ReadOnly[str]


ORDER = Order(7, [Line("a"), Line("b", 2)], None, {"x"})


def test_a_dataclass_travels_with_all_its_fields(trial: Any) -> None:
    assert trial(Order).send(ORDER) == {
        "number": 7,
        "lines": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}],
        "note": None,
        "tags": ["x"],
    }
    assert trial(Order).round_trip(ORDER) == ORDER


def test_defaults_fill_the_fields_that_are_missing_at_claim(trial: Any) -> None:
    assert trial(Order).receive({"number": 1, "lines": [{"sku": "a"}]}) == Order(1, [Line("a")])


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (BigLine("a"), "args.x: expected Line, got BigLine BigLine(sku='a', count=1, weight=0.0)"),
        ({"sku": "a"}, "args.x: expected Line, got dict {'sku': 'a'}"),
        (Line(5), "args.x.sku: expected str, got int 5"),  # type: ignore[arg-type]
    ],
)
def test_another_class_or_field_type_is_refused_at_enqueue(trial: Any, value: Any, error: str) -> None:
    assert trial(Line).send_error(value) == error


@pytest.mark.parametrize(
    ("tree", "error"),
    [
        ({"number": 1, "lines": [{"sku": "a", "count": "no"}]}, "args.x.lines[0].count: expected int, got str 'no'"),
        ({"lines": []}, "args.x: field 'number' is missing"),
        (
            {"number": 1, "lines": [], "colour": 1},
            "args.x: unknown field 'colour' (known: number, lines, note, tags)",
        ),
        ([], "args.x: expected Order, got list []"),
    ],
)
def test_f07_an_object_that_no_longer_fits_names_the_field(trial: Any, tree: Any, error: str) -> None:
    assert trial(Order).receive_error(tree) == error


def test_what_a_dataclass_itself_refuses_is_an_args_error(trial: Any) -> None:
    with pytest.raises(ArgsError) as caught:
        trial(Positive).receive({"value": 0})

    assert str(caught.value) == "args.x: Positive refuses it: ValueError: not positive"
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_recursive_dataclass_travels(trial: Any) -> None:
    tree = Node("a", [Node("b", [Node("c")]), Node("d")])

    assert trial(Node).round_trip(tree) == tree
    assert trial(Node).receive_error({"name": "a", "children": [{"name": 5}]}) == (
        "args.x.children[0].name: expected str, got int 5"
    )


@pytest.mark.parametrize("depth", [101, 5_000])
def test_a_recursive_value_is_refused_when_nested_too_deep(trial: Any, depth: int) -> None:
    node = Node("leaf")
    for _ in range(depth):
        node = Node("inner", parent=node)

    assert "nested" in trial(Node).send_error(node)


def test_a_value_that_contains_itself_is_refused(trial: Any) -> None:
    node = Node("a")
    node.parent = node

    assert "contains itself" in trial(Node).send_error(node)


def test_a_field_that_was_never_set_is_refused(trial: Any) -> None:
    assert "a field is not set" in trial(Order).send_error(object.__new__(Order))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Address, {"street": "a"}),
        (Address, {"street": "a", "zip": "1"}),
        (Loose, {"street": "a"}),
        (Extended, {"street": "a", "line": Line("a")}),
        (ReadOnlyAddress, {"street": "a"}),
    ],
)
def test_a_typed_dict_travels(trial: Any, annotation: Any, value: Any) -> None:
    assert trial(annotation).round_trip(value) == value
    assert trial(annotation).round_trip(ChainMap(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Address, {}, "args.x: field 'street' is missing"),
        (Address, {"street": "a", "zap": 1}, "args.x: unknown field 'zap' (known: street, zip)"),
        (Address, {"street": 5}, "args.x.street: expected str, got int 5"),
        (Address, [], "args.x: expected Address, got list []"),
        (Loose, {"note": "a"}, "args.x: field 'street' is missing"),
        (Extended, {"street": "a"}, "args.x: field 'line' is missing"),
    ],
)
def test_a_mapping_that_is_not_the_typed_dict_is_refused_on_both_sides(
    trial: Any, annotation: Any, value: Any, error: str
) -> None:
    assert trial(annotation).send_error(value) == error
    assert trial(annotation).receive_error(value) == error


@dataclass
class Computed:
    total: int = field(init=False, default=0)


@dataclass
class Seeded:
    value: int
    seed: InitVar[int]


@dataclass
class Box(Generic[T]):
    content: T


@dataclass(init=False)
class OwnInit:
    value: int

    def __init__(self, other: int) -> None:
        self.value = other


@dataclass
class Holder:
    data: bytes


class Point(NamedTuple):
    x: int


class Plain:
    pass


class Entity:
    __mapper__ = object()


class GenericDict(TypedDict, Generic[T]):
    content: T


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (Computed, "Computed.total: a field with init=False could not be given back"),
        (Seeded, "Seeded: its __init__ and its fields differ in 'seed' (an InitVar?)"),
        (OwnInit, "OwnInit: its __init__ and its fields differ in 'other' (an InitVar?)"),
        (Box, "Box has type variables, a worker needs the types themselves"),
        (GenericDict, "GenericDict has type variables, a worker needs the types themselves"),
        (Holder, "Holder.data: bytes has no JSON form of its own: pass base64 in a str, or store it and pass its key"),
        (Point, "Point has no JSON form of its own: use a dataclass, a TypedDict or a model, or pass its key"),
        (Plain, "Plain has no JSON form of its own: use a dataclass, a TypedDict or a model, or pass its key"),
        (Entity, "Entity is an ORM entity: pass its primary key and load it in the handler"),
        (typing.Callable[[], int], "Callable[[], int] has no JSON form of its own: pass a name in a str"),
        (T, "~T is a type variable, a worker needs the type itself"),
        (typing.Iterable[int], "Iterable[int] has no JSON form of its own: use Sequence"),
    ],
)
def test_a_class_without_json_form_is_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert refusal(annotation) == f"parameter 'x': {error}"


def test_keyword_only_fields_and_slots_are_fine(trial: Any) -> None:
    made = dataclasses.make_dataclass("Made", [("a", int)], kw_only=True, slots=True)

    assert trial(made).round_trip(made(a=1)) == made(a=1)
