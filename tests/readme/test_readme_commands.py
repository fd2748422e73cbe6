"""The shell blocks of the documents: run as they are written, against a database of the test's own."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from contextlib import ExitStack

import anyio
import pytest
import sqlalchemy as sa
from documents import DOCUMENTS, ROOT, Block, blocks, commands
from following import Reader
from running import AT_WORK, Running, environment, running
from usage import taken

import jobq

SHELL = [block for document in DOCUMENTS for block in blocks(document) if block.language == "sh"]
FRESH_CLONE = "python3 -m venv"  # CI runs these two as they stand
pytestmark = pytest.mark.slow


def test_there_are_the_blocks_of_the_first_steps() -> None:
    assert len([block for block in SHELL if block.text.startswith(FRESH_CLONE)]) == 2
    assert any("jobq migrate" in block.text and "jobq run" in block.text for block in SHELL)


@pytest.mark.parametrize(
    "block", [block for block in SHELL if block.text.startswith(FRESH_CLONE)], ids=lambda block: block.id
)
def test_a_command_for_a_fresh_clone_can_be_typed(block: Block) -> None:
    venv, install, last = commands(block.text)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    assert subprocess.run(["sh", "-n", "-c", block.text], check=True).returncode == 0
    assert venv == "python3 -m venv .venv"
    assert set(re.findall(r"\.\[(.+)\]", install)[0].split(",")) <= extras.keys()
    assert last.startswith(".venv/bin/python -m pytest") or taken(last.removeprefix(".venv/bin/"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "block", [block for block in SHELL if not block.text.startswith(FRESH_CLONE)], ids=lambda block: block.id
)
async def test_a_shell_block_runs_line_by_line(block: Block, application: Reader, empty_database_url: str) -> None:
    variables = environment(empty_database_url)
    if "jobq migrate" not in block.text:
        jobq.migrate(empty_database_url)
    with ExitStack() as workers:
        for line in commands(block.text):
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                assert sa.make_url(value).get_backend_name() == "postgresql"
                assert name in variables
            elif line.startswith("jobq run "):
                worker = workers.enter_context(running(line, application.folder, empty_database_url))
                worker.until(AT_WORK)
                workers.callback(stops, worker)
            else:
                assert line.startswith("jobq "), line
                await anyio.run_process(shlex.split(line), cwd=application.folder, env=variables)


def stops(worker: Running) -> None:
    assert worker.stop() == 0
