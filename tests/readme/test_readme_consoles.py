"""What the documents show of a console: the situation is made real, and the commands say the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

import anyio
import httpx
import pytest
import sqlalchemy as sa
from documents import DOCUMENTS, blocks
from following import PATIENCE_SECONDS, Reader
from numbered import make_job
from running import environment
from sqlalchemy.orm import Session

import jobq
from jobq.tables import schedules

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TIME = re.compile(r"(\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC")
SPAN = re.compile(r"\b\d+(\.\d+)?[smhd]\b( \d+[smhd]\b)?")
NEW_JOB = re.compile(r"(?<=^enqueued job )\d+")
FAILURES = 2


class Said(NamedTuple):
    """A command and what it says; `...` stands for what is left out."""

    command: str
    output: str


def dialogue(text: str) -> list[Said]:
    _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    said = [part.partition("\n") for part in parts]
    return [Said(command.partition("  #")[0], output) for command, _, output in said]


CONSOLES = {
    dialogue(block.text)[0].command: dialogue(block.text)
    for document in DOCUMENTS
    for block in blocks(document)
    if block.language == "console"
}


def test_every_console_has_its_situation() -> None:
    assert CONSOLES.keys() == {"jobq why 42", "jobq schedules"}


async def test_why_says_what_the_readme_shows(reader: Reader, session: Session) -> None:
    """A queue that is paused; a FIFO queue whose first job has failed twice and waits four minutes."""
    app = jobq.App()

    @app.handler("mail.send", queue="email")
    def mail() -> None: ...

    @app.handler("apollo.ask", queue="apollo", retry=lambda failures, _: timedelta(minutes=4 * (failures == FAILURES)))
    def ask() -> None:
        raise httpx.ReadTimeout("no answer")

    app.queue("apollo", fifo=True)
    jobq.pause(session, "email", timedelta(hours=1), reason="the provider is down")
    session.commit()
    for number, kind in {40: ask, 41: ask, 42: mail, 43: ask}.items():
        make_job(session.get_bind(), number, kind)

    await told("jobq why 42", reader, app, lambda session: failures(session, 40) == FAILURES)


def failures(session: Session, number: int) -> int:
    job = jobq.get(session, number)
    assert job is not None
    return job.failures


async def test_schedules_says_what_the_readme_shows(application: Reader) -> None:
    """The application of the README, whose nightly report has been made twelve times, and was missed once."""
    await told("jobq schedules", application, application.names["app"], has_gone_on_for_days)


def has_gone_on_for_days(session: Session) -> bool:
    """Once a worker has told of the schedule: its row as it is after thirteen days."""
    midnight = sa.func.date_trunc("day", sa.func.now(), "UTC")
    days = {"enqueued": 12, "missed": 1, "last_tick": midnight, "last_fate": "enqueued"}
    changed = sa.update(schedules).where(schedules.c.name == "nightly-report").values(days)
    done = session.execute(changed.returning(schedules.c.name)).one_or_none() is not None
    session.commit()
    return done


async def told(console: str, reader: Reader, app: jobq.App, is_so: Callable[[Session], bool]) -> None:
    """The commands of a console, while a worker runs, once it is so."""
    worker = jobq.Worker(app, reader.database_url)
    async with anyio.create_task_group() as group:
        await group.start(worker.run)
        with Session(reader.names["engine"]) as session, anyio.fail_after(PATIENCE_SECONDS):
            while not is_so(session):
                await anyio.sleep(0.02)
                session.rollback()
        for said in CONSOLES[console]:
            done = await anyio.run_process(shlex.split(said.command), env=environment(reader.database_url))
            assert re.fullmatch(pattern(said.output), general(done.stdout.decode()), re.DOTALL), done.stdout.decode()
        worker.stop()


def pattern(output: str) -> str:
    return re.escape(general(output)).replace(re.escape("..."), ".*")


def general(output: str) -> str:
    """Without what is another time next time."""
    return NEW_JOB.sub("NUMBER", SPAN.sub("SPAN", TIME.sub("TIME", output)))
