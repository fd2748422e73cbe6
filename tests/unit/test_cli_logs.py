from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from jobq_cli.logs import JsonFormatter, TextFormatter


class Textless:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def record(name: str = "shop", **extra: Any) -> logging.LogRecord:
    found = logging.LogRecord(name, logging.INFO, "shop.py", 1, "said %s", ("a\n\x1b[31m",), None)
    vars(found).update(extra)
    return found


@pytest.mark.parametrize(
    "odd",
    [float("nan"), {1: 2, (3, 4): 5}, cycle(), Textless(), "\ud800\x7f\u2028", object()],
    ids=["nan", "keys", "cycle", "textless", "text", "object"],
)
def test_whatever_a_record_carries_it_is_one_json_object_on_a_line(odd: Any) -> None:
    line = JsonFormatter().format(record(odd=odd, count=3))

    assert line.isascii()
    assert line.isprintable()
    fields = json.loads(line, parse_constant=pytest.fail)
    assert (fields["message"], fields["level"], fields["count"]) == ("said a\n\x1b[31m", "info", 3)
    assert "odd" in fields


def test_an_exception_is_text_in_one_field() -> None:
    try:
        raise KeyError("lost\n")
    except KeyError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))

    assert json.loads(line)["exception"].startswith("Traceback")


def test_the_text_form_has_time_level_and_message_on_one_line() -> None:
    line = TextFormatter().format(record(created=0.25, msecs=250.0, name="jobq.job"))

    assert line == "1970-01-01 00:00:00.250Z INFO    said a\\n\\x1b[31m"


def test_the_text_form_names_the_loggers_of_the_application() -> None:
    assert " INFO    shop: said" in TextFormatter().format(record())


def test_the_text_form_indents_a_traceback() -> None:
    try:
        raise KeyError("lost\x1b")
    except KeyError:
        first, *rest = TextFormatter().format(record(exc_info=sys.exc_info())).split("\n")

    assert "said" in first
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
