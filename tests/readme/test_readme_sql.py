"""The SQL of the documents, run as it stands in a database with the reader's tables."""

from __future__ import annotations

import psycopg
import pytest
from documents import DOCUMENTS, Block, blocks
from following import Reader
from sqlalchemy.orm import Session

import jobq
from jobq.urls import normalize

SQL = [block for document in DOCUMENTS for block in blocks(document) if block.language == "sql"]
(README,) = [block for block in SQL if block.document == "README.md"]


@pytest.mark.parametrize("block", SQL, ids=lambda block: block.id)
def test_a_block_of_sql_runs(block: Block, reader: Reader) -> None:
    run(block, reader)


def test_the_sql_of_the_readme_enqueues_what_it_says(reader: Reader, session: Session) -> None:
    session.add(reader.names["User"](id=7, email="ada@shop.example"))
    session.commit()

    run(README, reader)
    order = reader.names["Order"]()
    session.add(order)
    session.flush()

    confirm, welcome, first = [job for job in jobq.jobs(session) if job.state is jobq.State.PENDING]
    assert (first.kind, first.args, first.queue, first.priority) == ("email.send", {"to": "a@b.c"}, "default", 1)
    assert (welcome.args, welcome.unique_key, welcome.priority) == ({"to": "ada@shop.example"}, "welcome:7", 0)
    assert welcome.run_at > first.run_at
    assert (confirm.kind, confirm.args) == ("order.confirm", {"order_id": order.id})


def run(block: Block, reader: Reader) -> None:
    """All statements of the block at once, as psql sends a file."""
    url = normalize(reader.database_url).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute(block.text.encode())
