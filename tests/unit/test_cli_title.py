"""Which arguments are kept out of a process's title. Real processes: tests/database/test_process_titles.py."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

import pytest

from jobq import urls
from jobq_cli.app import run
from jobq_cli.settings.entries import entries
from jobq_cli.title import OPTIONS, VARIABLE, hidden, kept_from_title

URL = "postgresql://u:sekret@h:5432/d"
TYPED = ["run", "shop:app", "--database-url", URL, "--name", "a 'b'\n\udcff", ""]


class Started(BaseException):
    """Where a real process would be another one from here on."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """The command lines with which this process was started anew, and what they bring along."""
    calls: list[tuple[list[str], str]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        assert path == sys.executable
        calls.append((command, environment[VARIABLE]))
        raise Started

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.delenv(VARIABLE, raising=False)
    return calls


@pytest.mark.parametrize(
    "url",
    [
        URL, "postgres://u:se@kret@h/d", "postgresql://u:se/kret?@h/d", "u:sekret@h/d", "postgresql://u%40x:sekret@/d",
        "host=h password=sekret", *(f"postgresql://u@h/d?x=1&{option}=sekret" for option in urls.SECRET_OPTIONS),
    ],
)  # fmt: skip
@pytest.mark.parametrize("option", OPTIONS)
def test_a_url_with_a_password_is_hidden_in_both_forms(option: str, url: str) -> None:
    assert hidden(["run", option, url, f"{option}={url}", "x"]) == ["run", option, "***", f"{option}=***", "x"]


@pytest.mark.parametrize(
    "url",
    ["postgresql://u@h:5432/d?sslmode=require", "postgresql://h:5432/d", "postgresql:///d", "", "mysql://u@[::1]:1"],
)
def test_one_without_stays(url: str) -> None:
    arguments = ["--database-url", url, "run", f"--listen-url={url}", "--arg", f"at={URL}"]

    assert hidden(arguments) == arguments


def test_every_option_that_may_hold_a_password_is_known() -> None:
    assert sorted(OPTIONS) == sorted(each.flag for each in entries().values() if each.name.endswith("_url"))


def test_a_process_starts_anew_once_and_then_has_what_was_typed(
    started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "dev", "-m", "jobq", *TYPED])
    with pytest.raises(Started):
        kept_from_title(TYPED)
    ((command, brought),) = started

    monkeypatch.setattr(sys, "orig_argv", command)
    monkeypatch.setenv(VARIABLE, brought)

    assert command == ["python", "-X", "dev", "-m", "jobq", *hidden(TYPED)]
    assert kept_from_title(hidden(TYPED)) == TYPED
    assert VARIABLE not in os.environ
    assert kept_from_title(hidden(TYPED)) == hidden(TYPED)  # the variable was lost on the way: an error, and no loop
    assert len(started) == 1


@pytest.mark.parametrize("brought", ["version", "'", shlex.join(["run", "--database-url", URL])])
def test_what_others_have_left_in_the_variable_is_ignored(
    brought: str, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, brought)

    assert kept_from_title(["stats"]) == ["stats"]
    assert VARIABLE not in os.environ


def test_a_call_within_another_program_stays_in_it(started: list[Any]) -> None:
    assert run(["db", "url", "--database-url", URL]) == 0
    assert started == []


def test_where_it_cannot_start_anew_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def execve(*_: object) -> None:
        raise OSError(7, "Argument list too long")

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(sys, "orig_argv", ["jobq", *TYPED])

    assert kept_from_title(TYPED) == TYPED
