from __future__ import annotations

from enum import Enum, Flag, IntEnum, auto
from typing import Any, Literal

import pytest


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    OFF = 0
    ON = 1


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Rights(Flag):
    READ = auto()
    WRITE = auto()


@pytest.mark.parametrize(
    ("annotation", "value", "sent"),
    [
        (Color, Color.RED, "red"),
        (Level, Level.OFF, 0),
        (Mixed, Mixed.TWO, "two"),
        (Rights, Rights.READ | Rights.WRITE, 3),
        (Rights, Rights(0), 0),
        (Literal["a", 1, True, None], 1, 1),
        (Literal["a", 1, True, None], True, True),
        (Literal["a", 1, True, None], None, None),
        (Literal[Color.RED], Color.RED, "red"),
        (Literal["a"] | Literal["b"] | None, "b", "b"),
    ],
)
def test_a_choice_travels_as_its_value(trial: Any, annotation: Any, value: Any, sent: Any) -> None:
    received = trial(annotation).round_trip(value)

    assert (trial(annotation).send(value), type(trial(annotation).send(value))) == (sent, type(sent))
    assert received is value or received == value
    assert type(received) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value", "error"),
    [
        (Color, "red", "args.x: expected a member of Color, got str 'red'"),
        (Level, 1, "args.x: expected a member of Level, got int 1"),
        (Literal[1], True, "args.x: expected Literal[1], got bool True"),
        (Literal[1], 1.0, "args.x: expected Literal[1], got float 1.0"),
        (Literal["a"], [], "args.x: expected Literal['a'], got list []"),
    ],
)
def test_what_is_not_one_of_the_choices_is_refused_at_enqueue(
    trial: Any, annotation: Any, value: Any, error: str
) -> None:
    assert trial(annotation).send_error(value) == error


@pytest.mark.parametrize(
    ("annotation", "tree", "error"),
    [
        (Color, "green", "args.x: expected a value of Color, got str 'green'"),
        (Level, True, "args.x: expected a value of Level, got bool True"),
        (Level, 1.0, "args.x: expected a value of Level, got float 1.0"),
        (Rights, 8, "args.x: expected a value of Rights, got int 8"),
        (Rights, -1, "args.x: expected a value of Rights, got int -1"),
        (Color, [], "args.x: expected a value of Color, got list []"),
        (Literal[True], 1, "args.x: expected Literal[True], got int 1"),
        (Literal["a"], {}, "args.x: expected Literal['a'], got dict {}"),
    ],
)
def test_what_is_not_one_of_the_choices_is_refused_at_claim(trial: Any, annotation: Any, tree: Any, error: str) -> None:
    assert trial(annotation).receive_error(tree) == error


class Pair(Enum):
    ONE = (1, 2)


class Switch(Enum):
    ON = True


class Empty(Enum):
    pass


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (Pair, "parameter 'x': Pair: only str and int values travel, not tuple (1, 2)"),
        (Switch, "parameter 'x': Switch: only str and int values travel, not bool True"),
        (Empty, "parameter 'x': Empty has no members"),
        (Literal[b"a"], "parameter 'x': Literal[b'a']: bytes has no JSON form"),
        (
            Literal[Color.RED, "red"],
            "parameter 'x': Literal[Color.RED, 'red']: two of its values look the same in JSON,"
            " a worker could not tell them apart",
        ),
    ],
)
def test_a_choice_that_json_cannot_keep_is_refused_at_registration(refusal: Any, annotation: Any, error: str) -> None:
    assert refusal(annotation) == error
