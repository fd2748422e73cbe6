"""A reader of the documents, with a migrated database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from documents import snippets
from following import Reader
from numbered import make_job
from production_shop import APP
from sqlalchemy.orm import Session
from usage import ID

import jobq
from jobq.outgoing import watchers


@pytest.fixture
def session(engine: sa.Engine) -> Iterator[Session]:
    """On a database of the test's own: the snippets commit."""
    with Session(engine, expire_on_commit=False) as session:
        yield session


@pytest.fixture
def reader(tmp_path: Path, session: Session, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    before = [*watchers]  # what `jobq.tracing.instrument` adds to
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    reader = Reader(tmp_path, database_url)
    reader.open(session)
    make_job(session.get_bind(), int(ID), jobq.kind("receipt.send", queue="email"), order_id=7)
    jobq.cancel(session, int(ID))
    session.commit()
    yield reader
    reader.close()
    watchers[:] = before


@pytest.fixture
async def application(reader: Reader) -> Reader:
    """The reader, with the whole application of the README written."""
    await reader.follow(*snippets("README.md"))
    return reader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the application that is run in production, `shop.jobs:app`."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/jobs.py").write_text(APP)
    return tmp_path
