"""Where the options of `jobq run` come from: pyproject.toml, the environment, the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGTERM

import pytest
from run_process import APP, RunProcess

from jobq_cli.app import run as run_line
from jobq_cli.settings.entries import entries

Lines = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("DATABASE_URL", "JOBQ_DATABASE_URL", *(entry.variable for entry in entries().values())):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "settled", None)  # so that it is forgotten afterwards
    monkeypatch.delitem(sys.modules, "settled")
    return tmp_path


@pytest.fixture
def jobq(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Run a command line: exit code, and the lines of stdout and stderr."""

    def call(*arguments: str) -> tuple[int, list[str], list[str]]:
        capsys.readouterr()
        code = run_line(arguments)
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return call


@pytest.fixture
def worker(folder: Path) -> Iterator[Callable[..., RunProcess]]:
    """Start `jobq run` below the project's folder; whatever happens, it does not outlive the test."""
    processes: list[RunProcess] = []

    def start(*arguments: str, database_url: str) -> RunProcess:
        processes.append(RunProcess(folder / "below", *arguments, database_url=database_url))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def write(folder: Path, *lines: str) -> None:
    (folder / "pyproject.toml").write_text("\n".join(["[tool.jobq]", *lines]))


def test_a_worker_is_what_file_environment_and_command_line_say(
    folder: Path, worker: Callable[..., RunProcess], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, 'app = "shop:app"', "concurrency = 5", 'queues = ["fast", "default"]', 'name = "of-the-file"')
    monkeypatch.setenv("JOBQ_CONCURRENCY", "6")
    monkeypatch.setenv("JOBQ_NAME", "of-the-environment")
    monkeypatch.setenv("JOBQ_CONCURENCY", "7")

    process = worker("--name=of-the-line", database_url=database_url)
    doubt = process.until("is not read: did you mean JOBQ_CONCURRENCY?")
    start = process.until("worker of-the-line: queues fast, default; ")
    process.until("is at work as")
    process.signal(SIGTERM)

    assert process.end() == 0
    assert "6 at a time" in start
    assert "JOBQ_CONCURENCY" in doubt


def test_isolated_it_hears_of_neither_file_nor_environment(
    folder: Path, jobq: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text("[tool.jobq")
    monkeypatch.setenv("JOBQ_CONCURRENCY", "many")
    monkeypatch.setenv("JOBQ_DATABASE_URL", "postgresql://me:sekret@db/shop")

    code, out, err = jobq("run", "--isolated", "shop:app", "--lease=5", "--show-options", "--json")

    assert (code, err) == (0, [])
    found = {line["option"]: line for line in map(json.loads, out)}
    assert {name for name, line in found.items() if line["from"] != "default"} == {"app", "lease", "database-url"}
    assert found["database-url"] == {
        "option": "database-url", "value": "postgresql+psycopg://me:***@db/shop", "from": "JOBQ_DATABASE_URL"
    }  # fmt: skip


def test_the_options_are_shown_with_where_they_come_from(
    folder: Path, jobq: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, 'app = "shop:app"', 'lease = "1h30m"', 'queues = ["fast"]')
    monkeypatch.chdir(folder / "below")
    monkeypatch.setenv("JOBQ_LISTEN_URL", "postgresql://me:sekret@db/shop")

    code, out, err = jobq("run", "--no-listen", "--show-options")

    assert (code, err) == (0, [])
    assert [line.split()[0] for line in out[1:]] == [entry.key for entry in entries().values()]
    told = {line.split()[0]: " ".join(line.split()[1:]) for line in out}
    assert told["option"] == "value from"
    assert told["lease"] == "1h 30m ../pyproject.toml [tool.jobq] lease"
    assert told["queues"] == "fast ../pyproject.toml [tool.jobq] queues"
    assert told["listen"] == "false --no-listen"
    assert told["listen-url"] == "postgresql+psycopg://me:***@db/shop JOBQ_LISTEN_URL"
    assert told["concurrency"] == "20 default"
    assert told["processes"] == "as many as cores default"


def test_a_variable_that_is_not_read_is_said_where_the_options_are_shown(
    jobq: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_CONCURENCY", "5")

    code, out, err = jobq("run", "--show-options", "--json")

    assert (code, len(out)) == (0, len(entries()))
    assert err == ["warning: JOBQ_CONCURENCY is not read: did you mean JOBQ_CONCURRENCY?"]


def test_isolated_without_an_app_names_no_place_that_it_does_not_read(jobq: Lines) -> None:
    assert jobq("run", "--isolated") == (2, [], ["error: no app: write jobq run shop.jobs:app"])


def test_f65_everything_that_is_wrong_is_said_at_once_and_nothing_is_started(
    folder: Path, jobq: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "concurrency = 0", "poll_interval = 5")
    monkeypatch.setenv("JOBQ_GRACE", "soon")
    monkeypatch.setenv("JOBQ_DATABASE_URL", "mysql://me:sekret@db/shop")

    code, out, err = jobq("run", "--lease=-1", "--metrics-port=65536")

    assert (code, out) == (2, [])
    assert [line.split(" must be ")[0].split(": the ")[0] for line in err] == [
        "error: pyproject.toml [tool.jobq] concurrency",
        "error: pyproject.toml [tool.jobq] poll_interval: no such option; did you mean poll-interval?",
        "error: JOBQ_GRACE",
        "error: JOBQ_DATABASE_URL",
        "error: --lease",
        "error: --metrics-port",
        "error: no app: write jobq run shop.jobs:app, or set app in [tool.jobq] of pyproject.toml, or JOBQ_APP",
    ]
    assert "sekret" not in "".join(err)


def test_f65_a_broken_file_is_one_clear_line(folder: Path, jobq: Lines) -> None:
    (folder / "pyproject.toml").write_text("[tool.jobq]\nconcurrency = five\n")

    code, out, err = jobq("run")

    assert (code, out) == (2, [])
    assert err == ["error: pyproject.toml is not TOML: Invalid value (at line 2, column 15)"]


def test_json_is_for_showing_the_options(folder: Path, jobq: Lines) -> None:
    code, _, (line,) = jobq("run", "shop:app", "--json")

    assert code == 2
    assert "--json is for --show-options; for the log write --log json" in line


def test_check_takes_the_app_that_a_file_or_the_environment_names(
    folder: Path, jobq: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jobq("check")[2] == [
        "error: no app: write jobq check shop.jobs:app, or set app in [tool.jobq] of pyproject.toml, or JOBQ_APP"
    ]
    (folder / "settled.py").write_text(APP)
    write(folder, 'app = "settled:app"')
    monkeypatch.chdir(folder / "below")
    assert jobq("check", "--no-database")[:2] == (0, ["0 faults: 0 enqueues, 0 schedules"])
    monkeypatch.setenv("JOBQ_APP", "nowhere_else:app")
    assert "cannot import nowhere_else" in jobq("check")[2][0]


def test_schedules_are_listed_with_the_app_that_is_named_and_without_one_that_cannot_be_had(
    folder: Path, jobq: Lines, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", database_url)
    write(folder, 'app = "not_there:app"')

    code, _, err = jobq("schedules")

    assert code == 0
    assert err[0].startswith("cannot import not_there: ModuleNotFoundError")
    assert err[0].endswith("; what is in code alone is not shown")
