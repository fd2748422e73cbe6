"""What `ps` shows of a command, of a worker, and of the children that it starts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from run_process import RunProcess
from terminal import SIZE, read, resize

import jobq
from jobq_cli.title import VARIABLE
from jobq_cli.top.screen import HOME

APP = """
import jobq, logging, time

app = jobq.App()

@app.handler("charge", executor="process")
def charge(token: jobq.Secret[str]) -> None:
    logging.getLogger("shop").warning("begun with %s", token)
    time.sleep(60)
"""
TOKEN = "t0ken-in-args"
MODULE, SCRIPT = [sys.executable, "-m", "jobq"], [str(Path(sys.executable).with_name("jobq"))]

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")


@pytest.mark.parametrize("by", ["option", "variable"])
def test_f69_neither_password_nor_secret_is_in_the_title_of_a_worker_or_of_its_children(
    by: str, tmp_path: Path, engine: sa.Engine, database_url: str
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "pyproject.toml").touch()
    options = [f"--database-url={database_url}", "--listen-url", database_url] if by == "option" else []
    variable = database_url if by == "variable" else None
    process = RunProcess(tmp_path, "shop:app", *options, "--grace=0.1", database_url=variable)
    try:
        with engine.begin() as connection:
            jobq.enqueue(connection, jobq.kind("charge", queue="default"), token=TOKEN)
        process.until("begun with ***")
        worker = psutil.Process(process.process.pid)
        children = worker.children(recursive=True)
        titles = [" ".join(each.cmdline()) for each in (worker, *children)]
        environments = [each.environ() for each in children]
    finally:
        process.close()

    assert len(titles) >= 2
    assert any("jobq.child" in title for title in titles)
    assert ("--database-url=*** --listen-url *** --grace=0.1" in titles[0]) is (by == "option")
    assert not [title for title in titles if str(engine.url.password) in title or TOKEN in title]
    assert not [each for each in environments if VARIABLE in each or (by == "option" and database_url in each.values())]
    assert TOKEN not in "".join(process.lines)
    assert str(engine.url.password) not in "".join(process.lines)


@contextmanager
def top(command: list[str], password: str | None = None) -> Iterator[list[str]]:
    """The title of a `jobq top` that is drawn: it has found its database."""
    ours, theirs = pty.openpty()
    resize(ours, SIZE)
    environment = {name: each for name, each in os.environ.items() if name not in ("JOBQ_DATABASE_URL", "DATABASE_URL")}
    environment |= {"TERM": "xterm"} | ({"PGPASSWORD": password} if password else {})
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = ""
        while HOME not in written and (part := read(ours)):
            written += part
        assert HOME in written, written
        yield psutil.Process(process.pid).cmdline()
        os.write(ours, b"q")
        while read(ours):
            pass
    os.close(ours)
    assert process.returncode == 0


@pytest.mark.parametrize("program", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_f69_nor_is_the_password_in_the_title_of_a_command_that_stays(
    program: list[str], place: str, database_url: str
) -> None:
    option = ["--database-url", database_url]

    with top([*program, *option, "top"] if place == "before" else [*program, "top", *option]) as title:
        assert "***" in title
        assert str(sa.make_url(database_url).password) not in " ".join(title)


def test_a_url_without_a_password_stays_in_the_title(database_url: str) -> None:
    url = sa.make_url(database_url)
    command = [*MODULE, "top", "--database-url", url._replace(password=None).render_as_string()]

    with top(command, str(url.password)) as title:
        assert title == command


def test_an_option_beats_the_environment_as_before(database_url: str) -> None:
    environment = {**os.environ, "JOBQ_DATABASE_URL": "postgresql://u:other@127.0.0.1:1/none"}
    command = [*SCRIPT, "db", "url", "--json", "--database-url", database_url]

    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert f'/{sa.make_url(database_url).database}", "from": "--database-url"' in told
