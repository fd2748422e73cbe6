from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobq.worker.options import WorkerOptions, specs
from jobq_cli.logs import Level, LogForm
from jobq_cli.settings.command_line import takes_settings
from jobq_cli.settings.entries import entries
from jobq_cli.settings.merge import Settings, merge
from jobq_cli.settings.project import Project, ProjectFault, find_project
from jobq_cli.settings.reading import Unreadable, from_text, from_toml

FILE, VARIABLE, LINE = "pyproject.toml [tool.jobq] concurrency", "JOBQ_CONCURRENCY", "--concurrency"
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a project, whose files are named in messages as people see them."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def project(**table: Any) -> Project:
    return Project(Path("pyproject.toml"), {name.replace("_", "-"): value for name, value in table.items()})


def merged(
    table: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None, **line: str | bool
) -> Settings:
    return merge(None if table is None else project(**table), environment or {}, line)


@pytest.mark.parametrize(
    "given", [list(each) for n in range(4) for each in itertools.combinations(range(3), n)], ids=str
)
def test_the_command_line_wins_over_the_environment_and_both_over_the_file(given: list[int]) -> None:
    settings = merged(
        {"concurrency": 1} if 0 in given else {},
        {"JOBQ_CONCURRENCY": "2"} if 1 in given else {},
        **({"concurrency": "3"} if 2 in given else {}),
    )

    found = settings.found["concurrency"]
    expected = [(20, "default"), (1, FILE), (2, VARIABLE), (3, LINE)]
    assert (found.value, found.source) == expected[max(given, default=-1) + 1]
    assert settings.faults == []


def test_without_any_source_a_worker_is_as_in_python() -> None:
    assert WorkerOptions(**merged().values(specs(WorkerOptions))) == WorkerOptions()


def test_a_flag_can_be_taken_back() -> None:
    environment = {"JOBQ_POOLER": "yes", "JOBQ_LISTEN": "off"}

    assert (merged(None, environment)["pooler"], merged(None, environment)["listen"]) == (True, False)
    back = merged(None, environment, pooler=False, listen=True)
    assert (back["pooler"], back["listen"]) == (False, True)
    assert [back.found[name].source for name in ("pooler", "listen")] == ["--no-pooler", "--listen"]


def test_an_empty_variable_is_none() -> None:
    assert merged(None, {"JOBQ_CONCURRENCY": " ", "JOBQ_QUEUES": ""}).faults == []


def test_every_fault_of_every_source_is_named_with_its_place_and_what_is_allowed() -> None:
    table = {"concurrency": 0, "lease": True, "queues": ["a b"], "pool": 3, "listen_url": "postgresql://me:sekret@db/x"}
    environment = {"JOBQ_GRACE": "soon", "JOBQ_LISTEN_URL": "postgresql://me:sek@ret@db/shop", "JOBQ_POOLER": "perhaps"}

    settings = merged(table, environment, concurrency="many", log="xml", name="", app="shop.py")

    assert settings.faults == [
        f"{FILE} must be from 1 to 10000, got 0",
        "pyproject.toml [tool.jobq] lease must be seconds, or a span such as 90s or 5m, from 10ms to 1d, got true",
        "pyproject.toml [tool.jobq] queues: 'a b' is no name (1 to 63 of letters, digits, _ . - : /)",
        "pyproject.toml [tool.jobq] pool: no such option; did you mean pooler?",
        "pyproject.toml [tool.jobq] listen-url: it may hold a password, which a file that is committed should not:"
        " set JOBQ_LISTEN_URL",
        "JOBQ_GRACE must be seconds, or a span such as 90s or 5m, from 0s to 1d, got 'soon'",
        "JOBQ_POOLER must be true or false, got 'perhaps'",
        *[fault for fault in settings.faults if fault.startswith("JOBQ_LISTEN_URL: the database URL is malformed")],
        "--concurrency must be a whole number from 1 to 10000, got 'many'",
        "--log must be one of text, json, got 'xml'",
        "--name must be 1 to 200 printable characters, got ''",
        "APP: 'shop.py' is a file: write the module, shop:app",
    ]
    assert len(settings.faults) == 12
    assert "sek" not in "".join(settings.faults)


def test_what_a_number_counts_is_said_where_the_options_name_does_not() -> None:
    (fault,) = merged(None, max_memory_per_child="512MiB").faults

    assert fault == "--max-memory-per-child must be a whole number of MiB from 16 to 1073741824, got '512MiB'"


def test_one_name_without_brackets_is_no_list() -> None:
    (fault,) = merged({"queues": "email"}).faults

    assert fault.endswith("""queues must be a list of names, such as ["email", "default"], got 'email'""")


def test_what_a_later_source_says_rightly_does_not_hide_what_an_earlier_one_says_wrongly() -> None:
    assert merged({"concurrency": 0}, concurrency="5").faults == [f"{FILE} must be from 1 to 10000, got 0"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("concurency", "did you mean concurrency?"),
        ("poll_interval", "did you mean poll-interval?"),
        ("Lease", "did you mean lease?"),
        ("database-url", "set JOBQ_DATABASE_URL"),
        ("database_url", "set JOBQ_DATABASE_URL"),
        ("xyzzy", "no such option (known: queues, concurrency, "),
    ],
)
def test_f65_a_key_that_is_none_is_a_fault_that_says_what_was_meant(key: str, said: str) -> None:
    (fault,) = merge(Project(Path("pyproject.toml"), {key: 1}), {}, {}).faults

    assert fault.startswith(f"pyproject.toml [tool.jobq] {key}: ")
    assert said in fault


def test_a_variable_that_is_almost_an_option_is_doubted_and_others_are_let_be() -> None:
    environment = {"JOBQ_CONCURENCY": "5", "JOBQ_PG_BIN": "/x", "JOBQ_HOME": "/y", "JOBQ_NOTIFY": "off", "LEASE": "1"}

    settings = merged(None, environment)

    assert settings.doubts == ["JOBQ_CONCURENCY is not read: did you mean JOBQ_CONCURRENCY?"]
    assert settings.faults == []


def test_the_applications_own_database_is_read_only_where_nothing_else_is_said() -> None:
    shared = {"DATABASE_URL": "mysql://the/other"}

    assert merged(None, {**shared, "JOBQ_DATABASE_URL": "postgresql://db/a"}).faults == []
    assert merged(None, shared, database_url="postgresql://db/b").faults == []
    assert merged(None, {"DATABASE_URL": "postgresql://db/c"}).found["database_url"].source == "DATABASE_URL"
    (fault,) = merged(None, shared).faults
    assert fault.startswith("DATABASE_URL: the database URL names 'mysql'")


LEASE, QUEUES, FLAG, NUMBER = (entries()[name].spec.rule for name in ("lease", "queues", "pooler", "concurrency"))
LOG, PLACE = entries()["log"].spec.rule, entries()["app"].spec.rule


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        (LEASE, "60", 60 * SECOND),
        (LEASE, " 0.5 ", 0.5 * SECOND),
        (LEASE, "90s", 90 * SECOND),
        (LEASE, "1h30m", 5400 * SECOND),
        (LEASE, "0s", 0 * SECOND),
        (QUEUES, "a, b,a", ["a", "b"]),
        (FLAG, "TRUE", True),
        (FLAG, "0", False),
        (NUMBER, " 7 ", 7),
        (NUMBER, "-7", -7),
        (LOG, "JSON", LogForm.JSON),
        (PLACE, "shop.jobs:app", "shop.jobs:app"),
    ],
)
def test_a_text_says_a_value(rule: Any, text: str, value: Any) -> None:
    assert from_text(rule, text) == value


@pytest.mark.parametrize(
    ("rule", "value", "meant"),
    [
        (LEASE, 60, 60 * SECOND),
        (LEASE, 1.5, 1.5 * SECOND),
        (LEASE, "1h", 3600 * SECOND),
        (QUEUES, ["a", "b"], ["a", "b"]),
        (FLAG, False, False),
        (NUMBER, 7, 7),
        (LOG, "json", LogForm.JSON),
        (entries()["log_level"].spec.rule, "Warning", Level.WARNING),
    ],
)
def test_toml_says_a_value_in_its_own_types(rule: Any, value: Any, meant: Any) -> None:
    assert from_toml(rule, value) == meant


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (LEASE, "nan"), (LEASE, "inf"), (LEASE, "1e999"), (LEASE, "5 m"), (LEASE, ""), (LEASE, True), (LEASE, [1]),
        (QUEUES, "a,b"), (QUEUES, {"a": 1}), (FLAG, 1), (FLAG, "yes"), (NUMBER, "7"), (NUMBER, 7.0), (NUMBER, True),
        (LOG, "xml"), (LOG, 5), (PLACE, ["shop:app"]),
    ],
    ids=str,
)  # fmt: skip
def test_f65_what_toml_says_in_another_type_is_refused(rule: Any, value: Any) -> None:
    with pytest.raises(Unreadable):
        from_toml(rule, value)


@pytest.mark.parametrize("name", entries())
def test_every_option_can_be_read_from_every_source(name: str) -> None:
    """Of a rule that nobody has taught to read, this says so."""
    entry = entries()[name]

    settings = merged({name: object()}, {entry.variable: "\x00"}, **{name: "\x00"})

    named = [fault for fault in settings.faults if entry.variable in fault or entry.flag in fault or entry.key in fault]
    assert len(named) == 3
    assert entry.spec.about.endswith(".")
    assert entry.default is not None or entry.spec.unset or name == "app"


def test_the_command_takes_an_option_for_every_entry() -> None:
    def command(app: str | None = None, **given: Any) -> None: ...

    taken = inspect.signature(takes_settings(command)).parameters

    assert set(taken) == set(entries())


def test_the_nearest_file_with_a_table_of_ours_is_the_project(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.jobq]\nconcurrency = 5\n")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    (below.parent / "pyproject.toml").write_text("[project]\nname = 'a'\n[tool.other]\nx = 1\n")

    found = find_project(below)

    assert found == Project(folder / "pyproject.toml", {"concurrency": 5})
    assert found.where == "pyproject.toml [tool.jobq]"
    assert find_project(Path("/")) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[tool.jobq\n", r"pyproject.toml is not TOML: Expected '\]' .*line 1"),
        (b"[tool.jobq]\nconcurrency = 1\nconcurrency = 2\n", "pyproject.toml is not TOML: "),
        (b"[tool]\njobq = 5\n", r"tool.jobq is no table: write \[tool.jobq\] on a line of its own"),
        (b"\xff\xfe", "pyproject.toml is not UTF-8, as TOML has to be"),
    ],
)
def test_f65_a_file_that_cannot_be_read_is_one_line(folder: Path, content: bytes, said: str) -> None:
    (folder / "pyproject.toml").write_bytes(content)

    with pytest.raises(ProjectFault, match=said) as caught:
        find_project(folder)
    assert "\n" not in str(caught.value)


def test_an_app_that_a_file_names_is_beside_that_file() -> None:
    assert merged({"app": "shop.jobs:app"}).app_folder == Path()
    assert merged({"app": "shop.jobs:app"}, {"JOBQ_APP": "other:app"}).app_folder is None
    assert merged(None, {"JOBQ_APP": "other:app"}).app_folder is None
