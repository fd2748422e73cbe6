"""`jobq.Secret[...]`: the value as it is, and nothing of it in any error."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import pytest

import jobq
from jobq.codec import Codec
from jobq.errors import ArgsError

CANARY = "hunter2"
app = jobq.App()


@dataclass
class Account:
    name: str
    key: jobq.Secret[str]
    children: list[Account]


def handler(
    token: jobq.Secret[str],
    account: Account | None = None,
    pins: list[jobq.Secret[int]] | None = None,
    many: jobq.Secret[dict[str, list[str]]] | None = None,
    api_key: str = "",
    to: str = "",
) -> None: ...


CODEC = Codec.of(handler)


def test_a_secret_travels_as_its_type_does() -> None:
    given = {"token": "t0ken", "account": Account("a", CANARY, []), "pins": [1234], "many": {"a": ["b"]}, "to": "b"}

    assert CODEC.decode(CODEC.encode((), given)) == given


def test_parameters_that_hold_a_secret_or_are_called_like_one_are_known() -> None:
    assert CODEC.secrets == {"token", "account", "pins", "many", "api_key"}


@pytest.mark.parametrize(
    "given",
    [
        {"token": [CANARY]},
        {"token": CANARY.encode()},
        {"token": CANARY + "\0"},
        {"token": CANARY + "\ud800"},
        {"token": "t", "account": Account("a", [CANARY], [])},  # type: ignore[arg-type]
        {"token": "t", "account": Account("a", "b", [Account("c", {CANARY: 1}, [])])},  # type: ignore[arg-type]
        {"token": "t", "pins": [CANARY]},
        {"token": "t", "many": {CANARY: CANARY}},
        {"token": "t", "many": {"a": [[CANARY]]}},
        {"token": "t", "api_key": [CANARY]},
    ],
    ids=lambda given: f"{list(given)[-1]}",
)
def test_f69_an_error_at_the_call_does_not_show_it(given: dict[str, Any]) -> None:
    with pytest.raises(ArgsError) as caught:
        CODEC.encode((), given)

    assert CANARY not in said_by(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"token": ["hunter2"]}',
        '{"token": "t", "account": {"name": "a", "key": ["hunter2"], "children": []}}',
        '{"token": "t", "pins": ["hunter2"]}',
        '{"token": "t", "many": "hunter2"}',
        '{"token": "t", "many": {"a": "hunter2"}}',
        '{"token": "t", "api_key": {"hunter2": 1}}',
    ],
)
def test_f69_an_error_in_the_worker_does_not_show_it(text: str) -> None:
    with pytest.raises(ArgsError) as caught:
        CODEC.decode(text)

    assert CANARY not in said_by(caught.value)


def test_the_types_are_named() -> None:
    with pytest.raises(ArgsError, match=r"args\.token: expected str, got int \(a secret: the value is not shown\)"):
        CODEC.encode((), {"token": 12345678})


def said_by(error: BaseException) -> str:
    """Everything that a log prints of it, but the lines of this file, which name the canary."""
    lines = traceback.format_exception(error)
    return "".join(line for line in lines if __file__ not in line)
