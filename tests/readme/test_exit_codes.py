"""Each exit code in the README's table, from a worker that ends so."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest
from documents import rows
from production_shop import enqueued
from running import AT_WORK, Running, running
from sqlalchemy.orm import Session

pytestmark = pytest.mark.slow
CODES = rows("README.md", "Exit codes")


def stopped(worker: Running, session: Session) -> int:
    worker.until(AT_WORK)
    return worker.stop()


def ended_by_itself(worker: Running, session: Session) -> int:
    return worker.ends()


def stopped_with_a_stubborn_handler(worker: Running, session: Session) -> int:
    worker.until(AT_WORK)
    enqueued(session, "stubborn")
    worker.until("begun")
    return worker.stop()


def stopped_twice(number: signal.Signals) -> Callable[[Running, Session], int]:
    def stop(worker: Running, session: Session) -> int:
        worker.until(AT_WORK)
        enqueued(session, "long")
        worker.until("begun")
        worker.process.send_signal(number)
        worker.until("no more claims")
        return worker.stop(number)

    return stop


def killed(worker: Running, session: Session) -> int:
    worker.until(AT_WORK)
    return worker.stop(SIGKILL)


ENDS: dict[str, tuple[str, Callable[[Running, Session], int]]] = {
    "0": ("jobq run shop.jobs:app", stopped),
    "1": ("jobq run shop.nowhere:app", ended_by_itself),
    "2": ("jobq run shop.jobs:app --concurrency none", ended_by_itself),
    "70": ("jobq run shop.jobs:app --grace 0.1", stopped_with_a_stubborn_handler),
    "130": ("jobq run shop.jobs:app", stopped_twice(SIGINT)),
    "143": ("jobq run shop.jobs:app", stopped_twice(SIGTERM)),
    "137": ("jobq run shop.jobs:app", killed),
}


def test_the_table_of_exit_codes_is_whole() -> None:
    assert {code for row in CODES for code in re.findall(r"\d+", row.cells[0])} == ENDS.keys()


@pytest.mark.parametrize("code", ENDS)
def test_an_exit_code_comes_as_the_table_says(code: str, folder: Path, session: Session, database_url: str) -> None:
    line, end = ENDS[code]

    with running(line, folder, database_url) as worker:
        assert end(worker, session) == int(code), worker.lines
