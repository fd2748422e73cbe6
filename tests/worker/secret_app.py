"""The application of the tests on secrets: its handlers let them out in every way. Children import it by its name."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import anyio.lowlevel

import jobq

CANARY = "k4na/ry \u00e4'7"
NUMBER = 71717171
app = jobq.App()
logger = logging.getLogger("shop")


@dataclass
class Card:
    name: str
    number: jobq.Secret[int]


class DeclinedError(Exception):
    def __init__(self, token: str) -> None:
        super().__init__("declined", token)
        self.token = token


def let_out(how: str, token: str, card: Card, password: str) -> Any:
    """By an outcome, an error, a log, a report."""
    local = f"{token}{card.number}{password}"
    logger.warning("charging %s with %r", card, token, extra={"token": token, "all": [local]})
    print(f"printed {token} {card} {password}")
    jobq.current().progress(0.5, f"sent {local}")
    jobq.current().checkpoint({"token": token, "at": 1})
    if how == "ok":
        return jobq.Ok(f"sent {local}", result={"api_key": token, "number": 1})
    if how == "pause":
        raise jobq.PauseQueue(timedelta(hours=1), f"out of {local}")
    if how == "permanent":
        raise jobq.Permanent(f"no {password!r}")
    if how == "exotic":
        raise DeclinedError(token)
    return raise_in_turn(local)


def raise_in_turn(local: str) -> NoReturn:
    try:
        raise KeyError(local)
    except KeyError as error:
        error.add_note(f"a note on {local}")
        logger.exception("handled")
        raise ValueError(f"cannot charge {local!r}") from error


Once: dict[str, Any] = {"max_attempts": 1}


@app.handler("in_loop", **Once)
async def in_loop(how: str, token: jobq.Secret[str], card: Card, password: str) -> jobq.Outcome:
    await anyio.lowlevel.checkpoint()
    found: jobq.Outcome = let_out(how, token, card, password)
    return found


@app.handler("in_thread", **Once)
def in_thread(how: str, token: jobq.Secret[str], card: Card, password: str) -> jobq.Outcome:
    found: jobq.Outcome = let_out(how, token, card, password)
    return found


@app.handler("in_process", executor="process", **Once)
def in_process(how: str, token: jobq.Secret[str], card: Card, password: str) -> jobq.Outcome:
    found: jobq.Outcome = let_out(how, token, card, password)
    return found


def forms(value: str) -> Iterator[str]:
    """Of the canary what a search finds, however it is quoted."""
    yield value
    yield repr(value)[1:-1]
    yield value.encode("ascii", "backslashreplace").decode()
