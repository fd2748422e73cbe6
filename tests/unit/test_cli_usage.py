from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from jobq_cli.app import Root, app, run
from jobq_cli.signals import Terminated


def commands(group: Any, path: str = "") -> Iterator[str]:
    """Every command there is, also those of groups; a group itself is none."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


COMMANDS = list(commands(get_command(app)))
HEAVY = {"sqlalchemy", "psycopg", "alembic", "anyio", "rich", "jobq.tables"}


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", "postgresql://u:sekret@127.0.0.1:1/none")


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    words = capsys.readouterr().out

    assert [name for name in Root.entries if f"\n  {name} " not in words] == []


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("group", sorted({command.partition(" ")[0] for command in COMMANDS if " " in command}))
def test_the_help_of_each_group_has_an_example(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([group, "--help"]) == 0

    assert f"    jobq {group}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.split(), "--help"]) == 0
    words = capsys.readouterr().out

    assert f"    jobq {command}" in words or f"jobq {command})" in words
    assert max(map(len, words.splitlines())) <= 80


def test_the_help_loads_nothing_that_takes_time() -> None:
    script = (
        "import sys, typer; needed = {*sys.modules}; from jobq_cli.app import run; code = run(['--help']);"
        f"print(sorted((sys.modules.keys() - needed) & {HEAVY!r}), file=sys.stderr); sys.exit(code)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        pytest.param("lst", "No such command 'lst'", id="unknown command"),
        pytest.param("list --nope", "--nope", id="unknown option"),
        pytest.param("list --state pendng", "'dead', 'cancelled'", id="f65 a mistyped state names the choices"),
        pytest.param("list --queue=", "--queue", id="f65 an empty queue"),
        pytest.param("list --kind a|b", "--kind", id="a kind outside the rule"),
        pytest.param("list --limit 0", "--limit", id="a limit of none"),
        pytest.param("show abc", "'ID'", id="f66 a word for an id"),
        pytest.param("why abc", "'ID'", id="f66 a word for an id to be explained"),
        pytest.param("show -1", "-1", id="f66 a negative id"),
        pytest.param("retry -- -1", "'ID'", id="f66 a negative id after --"),
        pytest.param(f"cancel {10**30}", "'ID'", id="f66 an id out of range"),
        pytest.param("retry", "either ids or --state", id="nothing chosen"),
        pytest.param("cancel 5 --queue q", "either ids or --state", id="ids and filters"),
        pytest.param("retry 5 --dry-run", "--dry-run", id="a dry run of ids"),
        pytest.param("retry --state pending", "--state", id="a state that is not retried"),
        pytest.param("db", "Missing command", id="a group without a command"),
        pytest.param("stats --database-url mysql://u:sekret@h/d", "needs PostgreSQL", id="another database"),
        pytest.param("stats --database-url postgres://u:sek@ret@h/d", "malformed", id="f69 an unescaped @"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(line: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(line.split(" "))

    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert word in err
    assert "sek" not in err


@pytest.mark.parametrize("value", ["x'; DROP TABLE jobs; --", '"; LISTEN y; --', "%s %(a)s {0}"])
def test_f67_text_that_would_be_sql_is_no_name(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--queue", value]) == 2
    assert run(["list", "--kind", value]) == 2
    assert run(["list", "--state", value]) == 2


@pytest.mark.parametrize("command", ["stats", "list", "show 1", "why 1", "retry 1", "cancel 1", "workers", "migrate"])
def test_f66_f69_a_database_that_is_down_is_one_line_without_the_password(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(command.split())

    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: cannot connect to postgresql+psycopg://u:***@127.0.0.1:1/none")
    assert "sekret" not in err


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:sekret@no-such-host.invalid/d",
        "postgres://u:sekret@a..b/d",
        "postgres://u:sekret@127.0.0.1:1/d?sslmode=bogus",
        "postgres://u:sekret@127.0.0.1:1/d?connect_timeout=soon",
        "postgres://127.0.0.1:1/d?user=u&password=sekret",
    ],
)
def test_f69_no_form_of_url_shows_its_password(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--database-url", url, "stats"]) == 1
    assert "sekret" not in capsys.readouterr().err


def test_the_url_in_use_is_printed_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["db", "url"]) == 0
    assert capsys.readouterr().out == "postgresql://u@127.0.0.1:1/none\n"


def test_a_fault_of_ours_is_one_line_and_a_traceback_when_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(directory: object) -> bool:
        raise RuntimeError("odd")

    monkeypatch.setattr("jobq.embedded.stop", broken)

    assert run(["db", "stop"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: RuntimeError: odd (this is a fault in jobq; JOBQ_TRACEBACK=1 shows where)"
    ]
    monkeypatch.setenv("JOBQ_TRACEBACK", "1")
    assert run(["db", "stop"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_quiet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(directory: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("jobq.embedded.stop", interrupted)

    assert run(["db", "stop"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_what_fails_while_an_interrupt_undoes_things_is_that_interrupt(
    stop: type[KeyboardInterrupt], code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(directory: object) -> bool:
        try:
            raise stop
        finally:
            raise OSError("the connection is gone")

    monkeypatch.setattr("jobq.embedded.stop", interrupted)

    assert run(["db", "stop"]) == code
    assert capsys.readouterr().err == ""

    monkeypatch.setenv("JOBQ_TRACEBACK", "1")
    assert run(["db", "stop"]) == code
    assert "the connection is gone" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["version", "--version"])
def test_the_versions_are_shown(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([line]) == 0
    assert capsys.readouterr().out.startswith("jobq ")
