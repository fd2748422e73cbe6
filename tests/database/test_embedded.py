"""A real server of its own: shared, ended with its last user, private."""

from __future__ import annotations

import fcntl
import math
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
import sqlalchemy as sa

from jobq import embedded
from jobq.embedded.account import Account
from jobq.embedded.binaries import usable_binaries
from jobq.embedded.home import home_of
from jobq.embedded.locks import exclusive
from jobq.embedded.postmaster import Postmaster, read_postmaster
from jobq.embedded.supervisor import read_linger
from jobq.errors import EmbeddedError

FAST = {"fsync": "off"}
USER = """
import sys
from jobq import embedded
print("started", flush=True)
print(embedded.ensure(sys.argv[1], linger=float(sys.argv[2]), settings={"fsync": "off"}), flush=True)
sys.stdin.read()
"""


@contextmanager
def user(directory: Path, *, linger: float = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that uses the server, until the end of the block; and the URL that it was given."""
    command = [sys.executable, "-c", USER, str(directory), str(linger)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        yield process, process.stdout.readline().strip()


def postmaster(directory: Path) -> Postmaster:
    found = read_postmaster(home_of(directory).data)
    assert found is not None
    return found


def wait_for_the_end(directory: Path) -> None:
    """Returns when no process of the server is left; the timeout of the test bounds it."""
    with exclusive(home_of(directory).path / "server.lock"):
        pass


def is_used(directory: Path) -> bool:
    with open(home_of(directory).path / "users.lock", "r+b") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def ask(url: str, statement: str = "SELECT 1") -> object:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        result = connection.execute(sa.text(statement))
        return result.scalar() if result.returns_rows else None


def test_processes_share_one_server_that_ends_with_the_last_of_them(own_directory: Path) -> None:
    with user(own_directory) as (_, last_url):
        with user(own_directory) as (_, first_url):
            first_pid = postmaster(own_directory).pid
        assert first_url == last_url
        assert ask(last_url) == 1, "it lives on without the first one"
        assert postmaster(own_directory).pid == first_pid

    wait_for_the_end(own_directory)
    assert embedded.running(own_directory) is None


def test_a_killed_user_keeps_nothing_alive(own_directory: Path) -> None:
    with user(own_directory) as (process, url):
        assert ask(url) == 1
        process.kill()

    wait_for_the_end(own_directory)
    assert embedded.running(own_directory) is None


@pytest.mark.slow
def test_processes_that_start_it_at_once_get_the_same_server(own_directory: Path) -> None:
    command = [sys.executable, "-c", USER, str(own_directory), "inf"]
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes = [stack.enter_context(subprocess.Popen(command, text=True, **pipes)) for _ in range(6)]
        said = {process.communicate()[0] for process in processes}

    assert len(said) == 1
    assert "postgresql+psycopg://" in said.pop()
    assert home_of(own_directory).log.read_text().count("starting PostgreSQL") == 1


def test_one_that_is_still_starting_is_waited_for(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, settings=FAST)
    status_file = home_of(own_directory).data / "postmaster.pid"
    ready = status_file.read_text()
    status_file.write_text(ready.replace("ready", "starting"))
    command = [sys.executable, "-c", USER, str(own_directory), "0"]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        status_file.write_text(ready)
        assert process.stdout.readline() == f"{url}\n"


def test_it_can_be_kept_for_a_look_after_the_command(own_directory: Path) -> None:
    with user(own_directory, linger=math.inf) as (_, url):
        kept_pid = postmaster(own_directory).pid
    with user(own_directory, linger=0) as (_, later_url):
        assert later_url == url

    assert embedded.running(own_directory) == url
    assert postmaster(own_directory).pid == kept_pid
    assert ask(url) == 1
    assert embedded.stop(own_directory) is True
    assert embedded.stop(own_directory) is False


def test_the_longest_linger_counts_until_it_stops(own_directory: Path) -> None:
    home = home_of(own_directory)

    for linger, longest in [(1, 1), (900, 900), (2, 900)]:
        embedded.ensure(own_directory, linger=linger, settings=FAST)
        assert read_linger(home.path) == longest
    embedded.stop(own_directory)
    embedded.ensure(own_directory, linger=2)

    assert read_linger(home.path) == 2


def test_data_outlives_the_server(own_directory: Path) -> None:
    ask(embedded.ensure(own_directory, settings=FAST), "CREATE TABLE kept AS SELECT 42 AS answer")
    assert embedded.stop(own_directory) is True

    assert ask(embedded.ensure(own_directory, settings=FAST), "SELECT answer FROM kept") == 42


def test_where_no_server_was_there_is_none_to_stop(own_directory: Path) -> None:
    assert embedded.stop(own_directory / "nothing") is False
    assert embedded.running(own_directory / "nothing") is None
    assert list(own_directory.iterdir()) == [], "to look leaves no trace"


def test_without_tcp_only_its_user_can_reach_it(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, settings=FAST)

    found = postmaster(own_directory)
    assert ask(url, "SHOW fsync") == "off"
    assert psutil.Process(found.pid).net_connections("inet") == []
    assert Path(found.sockets).stat().st_mode & 0o777 == 0o700
    assert home_of(own_directory).log.stat().st_mode & 0o777 == 0o600
    assert embedded.running(own_directory, tcp=True) is None
    with pytest.raises(EmbeddedError, match=r"runs without TCP; stop it first \(jobq db stop\)"):
        embedded.ensure(own_directory, tcp=True)


def test_tcp_is_for_this_machine_and_asks_for_the_password(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, tcp=True, settings=FAST)

    listening = psutil.Process(postmaster(own_directory).pid).net_connections("inet")
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    assert home_of(own_directory).password.stat().st_mode & 0o777 == 0o600
    assert ask(url) == ask(embedded.ensure(own_directory)) == 1
    assert embedded.running(own_directory, tcp=True) == url
    wrong = sa.make_url(url).set(drivername="postgresql", password="wrong").render_as_string(hide_password=False)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
    assert ask(url, "SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'postgres'") is True


def test_what_an_interrupted_start_left_is_made_anew(own_directory: Path) -> None:
    left = own_directory / "data-1234"
    left.mkdir()
    (left / "PG_VERSION").write_text("18\n")

    assert ask(embedded.ensure(own_directory, settings=FAST)) == 1
    assert not left.exists()


def test_data_of_another_version_is_refused_and_left_alone(own_directory: Path) -> None:
    embedded.ensure(own_directory, settings=FAST)
    embedded.stop(own_directory)
    (home_of(own_directory).data / "PG_VERSION").write_text("9\n")

    with pytest.raises(
        EmbeddedError, match=r"is of PostgreSQL 9, but .* point JOBQ_PG_BIN at a PostgreSQL 9, or delete"
    ):
        embedded.ensure(own_directory)
    assert (home_of(own_directory).data / "global").is_dir()


def test_a_server_that_does_not_start_says_why_in_one_line(own_directory: Path) -> None:
    with pytest.raises(EmbeddedError, match=r"did not start .*nonsense") as caught:
        embedded.ensure(own_directory, settings={**FAST, "shared_buffers": "nonsense"})

    assert "\n" not in str(caught.value)
    assert embedded.running(own_directory) is None


def test_a_long_path_is_no_hindrance(own_directory: Path) -> None:
    directory = own_directory / ("x" * 120)

    assert ask(embedded.ensure(directory, settings=FAST)) == 1
    sockets = Path(postmaster(directory).sockets)
    assert embedded.stop(directory)
    assert not sockets.exists()


def test_a_killed_server_recovers_at_the_next_start(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, settings=FAST)
    ask(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(postmaster(own_directory).pid, signal.SIGKILL)
    wait_for_the_end(own_directory)

    assert ask(embedded.ensure(own_directory), "SELECT answer FROM kept") == 42


def test_without_its_supervisor_it_can_still_be_stopped(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, settings=FAST)
    supervisor = psutil.Process(postmaster(own_directory).pid).parent()
    assert supervisor is not None
    assert "supervisor.py" in " ".join(supervisor.cmdline())
    supervisor.kill()

    assert ask(url) == 1
    assert embedded.stop(own_directory) is True
    assert embedded.running(own_directory) is None


def test_a_directory_deleted_under_a_server_can_be_used_again(own_directory: Path) -> None:
    embedded.ensure(own_directory, linger=math.inf, settings=FAST)
    old = psutil.Process(postmaster(own_directory).pid)
    shutil.rmtree(own_directory)

    ask(embedded.ensure(own_directory, linger=0, settings=FAST), "CREATE TABLE kept AS SELECT 42 AS answer")
    old.wait()  # nobody uses it any more

    assert is_used(own_directory)
    assert ask(embedded.ensure(own_directory), "SELECT answer FROM kept") == 42
    assert embedded.stop(own_directory)
    assert ask(embedded.ensure(own_directory), "SELECT answer FROM kept") == 42


def reachable_python(account: Account) -> str:
    """A Python that the account can run: that of this run may lie below a home folder that it cannot enter."""
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        if Path(python).is_file() and account.can_run(Path(python)):
            newer = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(newer, check=False).returncode == 0:
                return python
    return pytest.skip(f"{account.name} can reach no Python 3.11")


@pytest.fixture
def home_folder(own_directory: Path) -> Path:
    """That of a user, with the modules of jobq in it."""
    folder = own_directory / "home"
    shutil.copytree(Path(embedded.__file__).parents[1], folder / "modules/jobq")
    return folder


def test_an_ordinary_user_has_it_in_the_home_folder(own_directory: Path, home_folder: Path) -> None:
    entry = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    os.chown(home_folder, account.uid, account.gid)
    environment = {
        "HOME": str(home_folder),
        "PYTHONPATH": str(home_folder / "modules"),
        "JOBQ_PG_BIN": str(usable_binaries(home_of(own_directory))),
    }
    code = """
import os
from jobq import embedded
directory = embedded.project_directory()
url = embedded.ensure(directory)
owner = os.stat(directory / "data/postmaster.pid").st_uid
mode = oct(directory.stat().st_mode & 0o777)
print(directory, owner, mode, url == embedded.running(directory), embedded.stop(directory))
"""
    run_as = account.run_as() if os.geteuid() == 0 else {}
    command = [reachable_python(account), "-c", code]
    said = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False, **run_as)

    assert said.stderr == ""
    directory, owner, *rest = said.stdout.split()
    assert Path(directory).parent == home_folder / ".local/share/jobq"
    assert int(owner) == account.uid
    assert rest == ["0o700", "True", "True"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server to another account")
def test_for_root_another_account_runs_it(own_directory: Path) -> None:
    url = embedded.ensure(own_directory, settings=FAST)

    account = home_of(own_directory).account
    assert account is not None
    assert psutil.Process(postmaster(own_directory).pid).uids().effective == account.uid != 0
    assert own_directory.stat().st_uid == 0
    assert own_directory.stat().st_mode & 0o777 == 0o711, "others pass through it, but cannot look"
    assert ask(url) == 1
