"""An environment for each queue, made with pip from the package registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGES = {
    "raw": ["psycopg[binary,pool]", "uvloop"],
    "proto": ["psycopg[binary,pool]", "uvloop", "anyio"],
    "pgqueuer": ["pgqueuer[asyncpg]", "psycopg[binary]", "uvloop"],
    "procrastinate": ["procrastinate", "psycopg[binary,pool]", "uvloop"],
}


def installed(names: list[str], folder: Path, *, install: bool) -> dict[str, str]:
    """The Python of each queue that is there, or can be made."""
    found = {}
    for name in names:
        if name == "jobq":
            found[name] = sys.executable  # which runs this
            continue
        python = (folder / name / "bin" / "python").absolute()
        if not (folder / name / ".complete").exists() and install:
            _make(name, folder / name)
        if (folder / name / ".complete").exists():
            found[name] = str(python)
        else:
            print(f"{name} is left out: it is not installed in {folder / name}", file=sys.stderr)
    return found


def _make(name: str, folder: Path) -> None:
    """The mark is made last: an environment that is half there does not count."""
    print(f"installing {name} into {folder}", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES[name]], check=True)
    except (subprocess.CalledProcessError, KeyError) as error:
        print(f"{name} cannot be installed: {error}", file=sys.stderr)
        return
    (folder / ".complete").touch()
