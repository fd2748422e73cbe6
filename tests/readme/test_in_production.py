"""What the documents say of containers, systemd and database URLs, read from them and done."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from signal import SIGTERM

import psutil
import pytest
from documents import ROOT, Row, blocks, rows, section, spans
from production_shop import enqueued, seen
from running import AT_WORK, can_have_namespaces, running
from sqlalchemy.orm import Session
from usage import taken

import jobq
from jobq import urls
from jobq.errors import OptionError

pytestmark = pytest.mark.slow

MARGIN_SECONDS = 10  # between the grace time and SIGKILL, as the README says
(DOCKERFILE,) = [block for block in blocks("README.md") if block.language == "dockerfile"]
UNIT = (ROOT / "examples/worker.service").read_text()
CODES = rows("README.md", "Exit codes")
URLS = rows("DESIGN.md", "Database URLs")


def instructions() -> dict[str, str]:
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in DOCKERFILE.text.splitlines()}


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT)
    return parser


def grace(line: list[str]) -> int:
    return int(line[line.index("--grace") + 1])


# in a container


def test_the_image_starts_a_worker_without_a_shell_and_not_as_root() -> None:
    said = instructions()
    command = json.loads(said["CMD"])

    assert [line.partition(" ")[0] for line in DOCKERFILE.text.splitlines()] == list(said)
    assert said["USER"] not in ("root", "0")
    assert taken(shlex.join(command))
    assert grace(command) + MARGIN_SECONDS <= 30  # what Kubernetes waits by itself


def test_f32_its_command_as_process_1_gives_back_what_runs(folder: Path, session: Session, database_url: str) -> None:
    command = json.loads(instructions()["CMD"])
    command[command.index("--grace") + 1] = "0.1"
    job_id = enqueued(session, "long")

    with running(command, folder, database_url, first=True) as worker:
        worker.until("begun")
        inner = [worker.process.pid, *(child.pid for child in psutil.Process(worker.process.pid).children())]
        psutil.Process(inner[-1]).send_signal(SIGTERM)
        code = worker.ends()

    job = seen(session, job_id)
    assert (code, job.state, job.failures) == (0, jobq.State.PENDING, 0)
    assert can_have_namespaces() == (len(inner) == 2)


# under systemd


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    said = unit()
    command = shlex.split(said["Service"]["ExecStart"])
    text = UNIT.replace(command[0], sys.executable)  # it has to be there
    (tmp_path / "jobq.service").write_text(text)

    assert set(said.sections()) == {"Unit", "Service", "Install"}
    assert taken(shlex.join(["jobq", *command[1:]]))
    if analyze := shutil.which("systemd-analyze"):
        done = subprocess.run([analyze, "verify", tmp_path / "jobq.service"], capture_output=True, text=True)
        assert [line for line in done.stderr.splitlines() if "jobq.service" in line] == []
        assert done.returncode == 0


def test_the_unit_waits_for_the_grace_time_and_knows_the_exit_codes() -> None:
    service = unit()["Service"]
    by_advice: dict[str, set[str]] = {}
    for row in CODES:
        by_advice.setdefault(row.cells[2].partition(";")[0], set()).update(re.findall(r"\d+", row.cells[0]))

    assert int(service["TimeoutStopSec"]) >= grace(shlex.split(service["ExecStart"])) + MARGIN_SECONDS
    assert (service["KillSignal"], service["KillMode"], service["Restart"]) == ("SIGTERM", "mixed", "on-failure")
    assert {"0", *service["SuccessExitStatus"].split()} == by_advice["nothing"]
    assert set(service["RestartPreventExitStatus"].split()) == by_advice["mend the command"]


def test_the_units_command_ends_with_0(folder: Path, database_url: str) -> None:
    command = shlex.split(unit()["Service"]["ExecStart"])

    with running(["jobq", *command[1:]], folder, database_url) as worker:
        worker.until(AT_WORK)

        assert worker.stop() == 0


# the database URL


@pytest.mark.parametrize("row", URLS, ids=lambda row: row.id)
def test_a_url_becomes_what_the_table_says(row: Row) -> None:
    (given,), becomes = spans(row.cells[0]), spans(row.cells[1])

    if row.cells[1].startswith("refused"):
        with pytest.raises(OptionError):
            urls.normalize(given)
    else:
        assert urls.normalize(given).render_as_string(hide_password=False) == becomes[0]


def test_the_first_of_the_places_that_name_a_database_counts() -> None:
    places = spans(section("README.md", "The database URL"))[:3]

    assert places == ["--database-url", *urls.VARIABLES]
