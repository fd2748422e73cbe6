from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest
import sqlalchemy as sa
from run_process import APP, RunProcess

import jobq
from jobq import embedded, tables
from jobq.errors import RegistrationError
from jobq_cli.app import run as cli

AT_WORK = "is at work as"
FIELDS = {"queue", "kind", "job_id", "attempt", "outcome", "wait", "duration", "worker_id"}
Run = Callable[..., RunProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    """Start `jobq run`; whatever happens, it does not outlive the test."""
    processes: list[RunProcess] = []

    def start(*arguments: str, database_url: str | None = None) -> RunProcess:
        processes.append(RunProcess(folder, *arguments, database_url=database_url))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def said_once(process: RunProcess) -> str:
    """The one line of a process that could not start."""
    (line,) = process.lines
    return line


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("nope:app", 1, "cannot import nope: ModuleNotFoundError: No module named 'nope'"),
        ("lame:app", 1, "cannot import lame: ModuleNotFoundError: No module named 'nowhere' (lame.py:2)"),
        ("typo:app", 1, "cannot import typo: SyntaxError: invalid syntax (typo.py:1)"),
        ("quits:app", 1, "cannot import quits: SystemExit: 3 (quits.py:1)"),
        ("twice:app", 1, "kind 'a' is registered twice"),
        ("shop:ap", 1, "module shop has no attribute 'ap' (an App there: shop:app, shop:nothing, shop:other)"),
        ("shop:logger", 1, "shop:logger is of type Logger, not a jobq.App"),
        ("shop:registry", 1, "shop:registry is a jobq.Registry (an app takes it over with app.include)"),
        ("shop:nothing", 1, "shop:nothing has no handlers"),
        ("shop", 2, "write module:attribute, such as shop:app"),
        ("shop.py", 2, "is a file: write the module, shop:app"),
        ("./shop.py:app", 2, "is a file: write the module, shop:app"),
        ("a b:c", 2, "write module:attribute, such as shop.jobs:app"),
    ],
)
def test_f66_what_cannot_be_imported_is_named_in_one_line(
    place: str, code: int, said: str, run: Run, folder: Path, database_url: str
) -> None:
    (folder / "lame.py").write_text("import jobq\nimport nowhere\n")
    (folder / "typo.py").write_text("def f(:\n")
    (folder / "quits.py").write_text("raise SystemExit(3)\n")
    (folder / "twice.py").write_text(
        "import jobq\napp = jobq.App()\n" + "@app.handler('a')\nasync def f() -> None: ...\n" * 2
    )

    process = run(place, database_url=database_url)

    assert process.end() == code
    assert said in said_once(process)


@pytest.mark.parametrize(
    "wrong",
    [
        "--concurrency=0", "--queues=", "--queues=a,,b", "--queue=a b", "--lease=0", "--lease=nan", "--grace=-1",
        "--grace=inf", "--poll-interval=1e9", "--stall=0", "--log=xml", "--log-level=loud", "--name=", "--name=a\nb",
        "--database-url=mysql://a/b", "--database-url=postgresql://a:sekret@x@h:port/b",
    ],
)  # fmt: skip
def test_f65_a_wrong_option_is_refused_before_anything_runs(wrong: str, run: Run) -> None:
    process = run("shop:app", wrong)

    assert process.end() == 2
    assert said_once(process).startswith("error: ")
    assert "sekret" not in said_once(process)


def test_f60_without_the_tables_it_says_what_to_type(run: Run, empty_database_url: str) -> None:
    process = run("shop:app", "--log-level=error", database_url=empty_database_url)

    assert process.end() == 1
    assert "no jobq schema in database" in said_once(process)
    assert "jobq migrate" in said_once(process)


def test_f60_a_newer_schema_is_refused_and_not_touched(run: Run, engine: sa.Engine, database_url: str) -> None:
    with engine.begin() as connection:
        version = sa.Table(_version_table(connection), sa.MetaData(), schema=tables.SCHEMA, autoload_with=connection)
        connection.execute(sa.update(version).values(version_num="9999"))

    process = run("shop:app", "--log-level=error", database_url=database_url)

    assert process.end() == 1
    assert "at revision 9999, newer than this jobq knows" in said_once(process)
    with engine.connect() as connection:
        assert connection.scalars(sa.select(version.c.version_num)).all() == ["9999"]


def _version_table(connection: sa.Connection) -> str:
    names = sa.inspect(connection).get_table_names(schema=tables.SCHEMA)
    return next(name for name in names if "version" in name)


def test_f69_a_wrong_password_ends_it_in_one_line_that_does_not_hold_it(run: Run, database_url: str) -> None:
    wrong = sa.make_url(database_url).set(password="sekret").render_as_string(hide_password=False)

    process = run("shop:app", "--log-level=debug", database_url=wrong)

    assert process.end() == 1
    assert "the database refuses the worker" in process.lines[-1]
    assert "sekret" not in "".join(process.lines)


def test_f66_a_database_that_is_away_is_waited_for_and_said_once(run: Run) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        process = run("shop:app", database_url=f"postgresql://u:sekret@127.0.0.1:{unused.getsockname()[1]}/d")
        process.until("the database cannot be used")
        process.signal(SIGTERM)

        assert process.end() == 0
    assert sum("cannot be used" in line for line in process.lines) == 1
    assert "sekret" not in "".join(process.lines)


def test_an_error_of_the_applications_own_lifespan_is_shown_with_its_place(run: Run, database_url: str) -> None:
    process = run("shop:other", database_url=database_url)

    assert process.end() == 1
    assert "the worker ended: RuntimeError: no key for the API" in "".join(process.lines)
    assert any("shop.py" in line for line in process.lines)


def test_f29_an_idle_worker_ends_with_0_at_the_first_signal(run: Run, database_url: str) -> None:
    process = run("shop:app", database_url=database_url)
    process.until(AT_WORK)

    process.signal(SIGTERM)

    assert process.ends_within(10) == 0


@pytest.mark.parametrize(("number", "code"), [(SIGTERM, 143), (SIGINT, 130)])
def test_f29_a_second_signal_gives_back_at_once(
    number: signal.Signals, code: int, run: Run, engine: sa.Engine, database_url: str
) -> None:
    job_id = enqueued(engine, "job.long")
    process = run("shop:app", database_url=database_url)
    process.until("begun")

    process.signal(number)
    process.until("no more claims")
    process.signal(number)

    assert process.ends_within(20) == code
    assert "Traceback" not in "".join(process.lines)
    assert_given_back(engine, job_id)


@pytest.mark.parametrize("kind", [pytest.param("job.stubborn", id="f30"), pytest.param("job.thread", id="f31")])
def test_f30_f31_a_handler_that_cannot_be_stopped_is_left_behind_with_70(
    kind: str, run: Run, engine: sa.Engine, database_url: str
) -> None:
    job_id = enqueued(engine, kind)
    process = run("shop:app", "--grace=0.1", database_url=database_url)
    process.until("begun")

    process.signal(SIGTERM)

    assert process.ends_within(20) == 70
    assert any("is left behind, still running" in line for line in process.lines)
    assert_given_back(engine, job_id)


def test_every_line_of_the_json_log_is_an_object(run: Run, engine: sa.Engine, database_url: str) -> None:
    job_id = enqueued(engine, "job.quick", text="sent\n\x1b[31m\x7f")
    enqueued(engine, "job.broken")
    process = run("shop:app", "--log=json", "--queues=fast", "--concurrency=1", database_url=database_url)
    process.until('"kind": "job.broken"')
    process.signal(SIGTERM)

    assert process.end() == 0
    records = [json.loads(line) for line in process.lines]
    assert all(line.isascii() and line.isprintable() for line in process.lines)
    (ended,) = [record for record in records if record.get("job_id") == job_id]
    assert ended.keys() >= {"at", "level", "logger", "message"} | FIELDS
    assert (ended["kind"], ended["queue"], ended["attempt"]) == ("job.quick", "fast", 1)
    (said,) = [record for record in records if record["message"].startswith("said")]
    assert said["logger"] == "shop"
    assert "ada" in said["who"]
    (handled,) = [record for record in records if record["message"] == "handled"]
    assert handled["exception"].splitlines()[-1].startswith("KeyError")


def test_the_text_log_says_what_is_served_and_escapes_control_characters(
    run: Run, engine: sa.Engine, database_url: str
) -> None:
    enqueued(engine, "job.quick", text="sent\n\x1b[31m")
    process = run("shop:app", "--name=w1", "--concurrency=3", database_url=database_url)
    start = process.until("worker w1: all queues (default, fast, ...)")
    process.until("fast job.quick")
    process.signal(SIGTERM)

    assert process.end() == 0
    assert "kinds job.broken, job.long, job.loop, job.quick, job.stubborn, job.thread; 3 at a time; postgresql" in start
    assert str(sa.make_url(database_url).password) not in "".join(process.lines)
    assert all(line.isprintable() for line in process.lines)


def test_f65_a_queue_that_nothing_uses_is_doubted_with_the_known_names(run: Run, database_url: str) -> None:
    process = run("shop:app", "--queue=emial,fast", database_url=database_url)

    doubt = process.until("is it mistyped?")
    process.signal(SIGTERM)

    assert process.end() == 0
    assert "queue emial: no handler and no job uses it (known: default, fast)" in doubt
    assert not any("queue fast:" in line for line in process.lines)


@pytest.mark.parametrize("log", ["text", "json"])
def test_without_a_url_it_says_in_one_line_that_it_uses_an_embedded_database(
    log: str, run: Run, folder: Path, own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.chdir(folder)
    process = run("shop:app", f"--log={log}")
    try:
        assert process.end() == 1  # it has no tables yet
    finally:
        embedded.stop(embedded.project_directory())

    (line,) = [line for line in process.lines if "this project's own PostgreSQL" in line]
    assert (log == "json") == line.startswith("{")
    assert "jobq migrate" in process.lines[-1]


def test_f71_a_module_that_is_run_as_a_script_enqueues_what_the_worker_knows(
    run: Run, folder: Path, engine: sa.Engine, database_url: str
) -> None:
    script = "\nimport sys, sqlalchemy as sa\nif __name__ == '__main__':\n" + (
        "    with sa.create_engine(sys.argv[1]).begin() as connection:\n"
        "        jobq.enqueue(connection, quick, text='from a script')\n"
    )
    (folder / "shop.py").write_text(APP + script)
    subprocess.run([sys.executable, "shop.py", database_url], cwd=folder, check=True, timeout=60)

    process = run("shop:app", database_url=database_url)
    process.until("fast job.quick")
    process.signal(SIGTERM)

    assert process.end() == 0
    with engine.connect() as connection:
        assert [job.outcome for job in jobq.jobs(connection)] == ["ok: from a script"]


def test_f71_a_module_that_is_executed_twice_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = jobq.Registry()
    source = compile("@registry.handler('a')\nasync def f() -> None: ...", "shop.py", "exec")
    exec(source, {"registry": registry})

    with pytest.raises(RegistrationError, match=r"shop\.py:1 was executed twice, .* script \(`__main__`\)"):
        exec(source, {"registry": registry})


def enqueued(engine: sa.Engine, kind: str, **args: str) -> int:
    queue = "fast" if kind in ("job.quick", "job.broken") else "default"
    with engine.begin() as connection:
        return jobq.enqueue(connection, jobq.kind(kind, queue=queue), **args).id


def assert_given_back(engine: sa.Engine, job_id: int) -> None:
    with engine.connect() as connection:
        job = jobq.get(connection, job_id)
    assert job is not None
    assert (job.state, job.failures, job.worker_id) == (jobq.State.PENDING, 0, None)


@pytest.mark.skipif(find_spec("uvloop") is None, reason="uvloop is not installed")
@pytest.mark.parametrize(("flag", "loop"), [("--uvloop", "uvloop"), ("--no-uvloop", "asyncio.")])
def test_the_event_loop_is_the_one_that_was_asked_for(
    flag: str, loop: str, run: Run, engine: sa.Engine, database_url: str
) -> None:
    process = run("shop:app", flag, "--grace=0s", database_url=database_url)
    for kind, said in (("job.loop", f"job.loop 1 attempt 1: ok: {loop}"), ("job.thread", "begun")):
        with engine.begin() as connection:
            jobq.enqueue(connection, jobq.kind(kind, queue="default"))
        process.until(said)
    process.signal(SIGTERM)

    assert process.end() == 70  # what sleeps in a thread is left behind


def test_without_uvloop_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jobq_cli.commands.run.find_spec", lambda name: None)
    monkeypatch.chdir(folder)

    assert cli(["run", "shop:app", "--uvloop"]) == 1
    assert capsys.readouterr().err.startswith("error: --uvloop needs the package uvloop: pip install 'jobq[uvloop]'")
