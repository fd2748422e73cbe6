"""The tables for those who come from Celery, RQ and procrastinate: what stands on the right is done."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import pytest
from documents import Row, rows, spans
from following import Reader
from numbered import make_job
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from usage import ID, is_command, taken

import jobq
import jobq.pytest_plugin
import jobq.testing
import jobq_cli.app
from jobq.options import Options

pytestmark = pytest.mark.anyio

SYSTEMS = ["Celery", "RQ", "procrastinate"]
ROWS = [row for system in SYSTEMS for row in rows("DESIGN.md", f"Coming from {system}")]
FUNCTION = "async def send_receipt(order_id: int) -> None: ..."
PERIODIC = '@app.handler("report.build")\nasync def build_report() -> None: ...'
GENERATOR = "async def clients() -> AsyncIterator[None]:\n    yield"
NOT_RUN_HERE = ("jobq run ", "jobq migration ")  # a process that stays, a history that is not there
TAKERS = (Options, jobq.cron, jobq.App.queue)
WORDS = {*vars(jobq.pytest_plugin), *chain(*(inspect.signature(taker).parameters for taker in TAKERS)), "meta"}
SIGNALS = {"Snooze": jobq.State.PENDING, "Permanent": jobq.State.DEAD}


def in_a_handler(span: str) -> bool:
    return span.startswith(("jobq.current()", "raise jobq."))


def test_each_system_has_its_table() -> None:
    assert {row.heading.removeprefix("Coming from ") for row in ROWS} == set(SYSTEMS)
    assert all(len(row.cells) == 2 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_what_you_write_now_works(row: Row, elsewhere: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_DATABASE_URL", elsewhere.database_url)
    done = 0
    for span in spans(row.cells[1]):
        await do(span, elsewhere)
        done += 1

    assert done or row.cells[1].startswith("nothing")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_what_you_wrote_is_code(row: Row) -> None:
    """It cannot be run here; but it can be read."""
    for span in spans(row.cells[0]):
        if not span.startswith(("celery ", "rq ", "procrastinate ")):
            assert parsed(span), span


async def do(span: str, reader: Reader) -> None:
    if is_command(span):
        command(span, reader)
    elif span.startswith("@"):
        await reader.execute(f"app = jobq.App()\n{span}\n{decorated_by(span)}")
    elif in_a_handler(span):
        await inside(span, reader)
    elif setting := re.fullmatch(r"(\w+)(=\w+)?", span):
        assert setting[1] in WORDS
    else:
        await reader.execute(span)


def decorated_by(span: str) -> str:
    if span.startswith(("@app.cron", "@app.every")):
        return PERIODIC
    return GENERATOR if "lifespan" in span else FUNCTION


def command(span: str, reader: Reader) -> None:
    assert taken(span)
    if not span.startswith(NOT_RUN_HERE):
        reader.names["session"].commit()
        make_job(reader.names["engine"], int(ID), jobq.kind("receipt.send", queue="email"), order_id=7)
        assert jobq_cli.app.run(span.split()[1:]) == 0


async def inside(span: str, reader: Reader) -> None:
    """In a handler, on a worker in this process: it does not fail, or gives the signal that is raised."""
    app = jobq.App()
    seen: list[Any] = []

    @app.handler("probe", max_attempts=1)
    async def probe() -> None:
        try:
            seen.append(await reader.execute(span))
        except BaseException as error:
            seen.append(error)
            raise

    session = reader.names["session"]
    enqueued = jobq.enqueue(session, probe)
    session.commit()
    await reader.work_until_nothing_is_due(jobq.Worker(app, reader.database_url))

    job = jobq.get(session, enqueued.id)
    assert job is not None
    assert job.state is SIGNALS.get(type(seen[0]).__name__, jobq.State.DONE), seen


def parsed(span: str) -> bool:
    """As a statement, a decorator, the arguments of a call, or a setting."""
    for form in ("{}", "{}\ndef f(): ...", "f({})", "async def f():\n {}"):
        try:
            ast.parse(form.format(span))
        except SyntaxError:
            continue
        return True
    return False


@pytest.fixture
async def elsewhere(reader: Reader) -> AsyncIterator[Reader]:
    """A reader who has an app with `send_receipt`, and sessions."""
    setup = f'app = jobq.App()\n@app.handler("receipt.send", queue="email")\n{FUNCTION}\n'
    setup += "at = datetime.now(UTC) + timedelta(hours=1)\ndef report(event): ..."
    await reader.execute(setup)
    handler = reader.names["send_receipt"]
    await reader.execute("app = jobq.App()")  # each row registers its own
    assert reader.names["send_receipt"] is handler
    engine = create_async_engine(reader.database_url)
    async with AsyncSession(engine) as reader.names["async_session"]:
        yield reader
    await engine.dispose()
