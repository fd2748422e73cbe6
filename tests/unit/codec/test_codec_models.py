from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from jobq.codec import Codec
from jobq.errors import ArgsError, RegistrationError


class User(BaseModel):
    name: str
    age: int = 0
    joined: datetime | None = None


class Admin(User):
    level: int = 1


class Team(BaseModel):
    kind: Literal["team"] = "team"
    members: list[User]


class Renamed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    full_name: str = Field(validation_alias="fullName", serialization_alias="FULLNAME")


class WithSecret(BaseModel):
    password: SecretStr


class WithExcluded(BaseModel):
    note: str = Field("", exclude=True)


class Measure(BaseModel):
    value: float


class Tree(BaseModel):
    children: list[Tree] = []


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Maybe(pydantic.RootModel[int | None]):
    pass


class Loose(BaseModel):
    value: Any


@pydantic.dataclasses.dataclass
class Checked:
    count: int


@dataclass
class Invitation:
    user: User
    price: Decimal


class Event(msgspec.Struct):
    name: str
    at: datetime | None = None
    tags: set[str] = set()


class Other(msgspec.Struct):
    name: str


class Created(msgspec.Struct, tag=True):
    id: int


class Deleted(msgspec.Struct, tag=True, eq=False):
    id: int


class Pair(msgspec.Struct, array_like=True):
    a: int
    b: float


ANN = User(name="Ann", age=5)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (User, ANN),
        (list[User], [ANN]),
        (User | None, None),
        (User | Team | None, Team(members=[ANN])),
        (User | Team, ANN),
        (Invitation, Invitation(ANN, Decimal("1.10"))),
        (Renamed, Renamed(fullName="Ann")),
        (Numbers, Numbers([1, 2])),
        (Checked, Checked(count=5)),
        (Tree, Tree(children=[Tree(), Tree(children=[Tree()])])),
        (Event, Event("a", None, {"x"})),
        (list[Event] | Event, [Event("a")]),
        (Created | Deleted | None, Created(5)),
        (Pair, Pair(1, 2.5)),
    ],
)
def test_a_model_survives(trial: Any, annotation: Any, value: Any) -> None:
    assert trial(annotation).round_trip(value) == value


def test_a_struct_that_compares_by_identity_survives(trial: Any) -> None:
    assert trial(Deleted).round_trip(Deleted(5)).id == 5


def test_a_model_is_sent_by_field_names_and_taken_by_name_or_alias(trial: Any) -> None:
    assert trial(Renamed).send(Renamed(fullName="Ann")) == {"full_name": "Ann"}
    assert trial(Renamed).receive({"fullName": "Ann"}) == Renamed(fullName="Ann")


def test_a_large_float_in_a_field_of_any_type_is_sent_as_the_integer_it_equals(trial: Any) -> None:
    assert trial(Loose).codec.encode((Loose(value=7.205759403792251e16),), {}) == '{"x":{"value":72057594037922512}}'
    assert trial(Measure).round_trip(Measure(value=7.205759403792251e16)) == Measure(value=7.205759403792251e16)


def test_a_model_completed_after_the_handler_is_postponed() -> None:
    names: dict[str, Any] = {"__name__": "models"}
    exec("import pydantic\nclass Early(pydantic.BaseModel):\n    late: 'Late'", names)

    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = names["Early"]
    codec = Codec.of(handler)
    with pytest.raises(RegistrationError, match="parameter 'x': Early is not fully defined"):
        codec.resolve()

    names["Early"].model_rebuild(_types_namespace={"Late": User})

    assert codec.decode(codec.encode((names["Early"](late=ANN),), {}))["x"].late == ANN


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (User, Admin(name="a"), "args.x: expected User, got Admin "),
        (User, {"name": "a"}, "args.x: expected User, got dict {'name': 'a'}"),
        (WithSecret, WithSecret(password=SecretStr("hunter2")), "args.x.password: does not survive its own JSON"),
        (WithExcluded, WithExcluded(note="a"), "args.x.note: does not survive its own JSON"),
        (Maybe, Maybe(None), "args.x: a model that is null in JSON could not be told from None"),
        (Measure, Measure(value=float("nan")), "args.x.value: "),
        (User, User.model_construct(name=5), "args.x: User has no JSON form"),
        (Team, Team(members=[Admin(name="a")]), "args.x"),
        (User, User(name="a\0b"), "args.x.name: NUL character, jsonb cannot hold it"),
        (Event, Other("a"), "args.x: expected Event, got Other"),
        (Event, Event(5), "args.x: Expected `str`, got `int` - at `$.name`"),  # type: ignore[arg-type]
        (Pair, Pair(1, float("nan")), "args.x: Expected `float`, got `null` - at `$[1]`"),
    ],
)
def test_a_model_that_its_json_would_change_is_refused_at_enqueue(
    trial: Any, annotation: Any, value: Any, error: str
) -> None:
    message = trial(annotation).send_error(value)

    assert message.startswith(error)
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("annotation", "tree", "error"),
    [
        (User, {"name": "a", "age": "no"}, "args.x.age: Input should be a valid integer"),
        (User, {}, "args.x.name: Field required"),
        (Team, {"members": [{"name": 5}]}, "args.x.members[0].name: Input should be a valid string"),
        (WithSecret, {"password": {"hunter2": 1}}, "args.x.password: Input should be a valid string"),
        (Renamed, {"full_name": "a", "hunter2": 1}, "args.x.hunter2: Extra inputs are not permitted"),
        (Event, {"name": 5}, "args.x: Expected `str`, got `int` - at `$.name`"),
        (Created | Deleted, {"type": "no", "id": 1}, "args.x: Invalid value 'no' - at `$.type`"),
    ],
)
def test_at_claim_the_rules_are_those_of_the_model(trial: Any, annotation: Any, tree: Any, error: str) -> None:
    assert trial(annotation).receive_error(tree).startswith(error)


def test_an_error_of_a_model_keeps_no_input_in_its_chain(trial: Any) -> None:
    with pytest.raises(ArgsError) as caught:
        trial(User).receive({"name": "a", "age": "hunter2"})

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("kind", [User, Event])
def test_text_that_is_not_unicode_is_an_args_error(trial: Any, kind: Any) -> None:
    with pytest.raises(ArgsError):
        trial(kind).codec.decode('{"x":{"name":"\\ud800"}}')


def test_a_model_nested_too_deep_is_refused(trial: Any) -> None:
    tree = Tree()
    for _ in range(60):  # an object and an array each
        tree = Tree(children=[tree])

    assert "nested more than 100 deep" in trial(Tree).send_error(tree)


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (Annotated[int, Field(gt=0)], "it would not be checked; put it in a model"),
        (Annotated[int, annotated_types.Gt(0)], "it would not be checked; put it in a model"),
        (Annotated[int, msgspec.Meta(gt=0)], "it would not be checked; put it in a model"),
        (pydantic.PositiveInt, "it would not be checked; put it in a model"),
        (list[pydantic.StrictStr], "it would not be checked; put it in a model"),
        (User | Event, "User | Event: both are a JSON object, a worker could not tell them apart"),
        (User | Invitation, "User | Invitation: both are a JSON object, a worker could not tell them apart"),
        (Event | Other, "Event: "),
        (SecretStr, "SecretStr has no JSON form of its own"),
    ],
)
def test_what_only_a_model_could_check_is_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert error in refusal(annotation)


def test_other_metadata_of_annotated_is_passed_over(trial: Any) -> None:
    assert trial(Annotated[int, "in cents", []]).round_trip(5) == 5


def test_neither_library_is_imported_for_plain_types() -> None:
    code = (
        "import sys; from jobq.codec import Codec\n"
        "def f(a: int, b: list[str] | None, c: 'Undefined') -> None: ...\n"
        "Codec.of(f); assert not {'pydantic', 'msgspec'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
