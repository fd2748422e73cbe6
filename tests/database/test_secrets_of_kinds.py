"""Secrets of jobs whose enqueue knew nothing of their handler: masked by what workers have said of the kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import add_ended, add_job
from sqlalchemy.dialects.postgresql import JSONB

import jobq
from jobq.store.leasing import Published, publish
from jobq.tables import kinds
from jobq_cli.app import run

pytestmark = pytest.mark.duty("read")

CANARY = "k4nary"
PLACE = {"card": CANARY, "to": "ada"}
BARE = jobq.kind("charge", queue="default")
SHOWING = ("show {id}", "show {id} --json", "list", "list --json", "why {id}", "stats --json")
app = jobq.App()


@app.handler("charge")
def charge(card: jobq.Secret[str], to: str, pin: jobq.Secret[int] = 0) -> None: ...


@app.handler("mail")
def mail(to: str) -> None: ...


def by_function(connection: sa.Connection) -> None:
    connection.execute(sa.text("SELECT jobq.enqueue('charge', CAST(:args AS jsonb))"), {"args": json.dumps(PLACE)})


def by_trigger(connection: sa.Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE pg_temp.orders (card text, buyer text);"
        "CREATE FUNCTION pg_temp.charge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM jobq.enqueue('charge', jsonb_build_object('card', NEW.card, 'to', NEW.buyer)); RETURN NULL; END $$;"
        "CREATE TRIGGER charge AFTER INSERT ON pg_temp.orders FOR EACH ROW EXECUTE FUNCTION pg_temp.charge();"
        "INSERT INTO pg_temp.orders VALUES ('k4nary', 'ada')"
    )


def by_bare_kind(connection: sa.Connection) -> None:
    jobq.enqueue(connection, BARE, **PLACE)


def by_bare_kind_in_bulk(connection: sa.Connection) -> None:
    jobq.enqueue_many(connection, BARE, [PLACE])


def by_bare_kind_from_a_query(connection: sa.Connection) -> None:
    jobq.enqueue_select(connection, BARE, sa.select(sa.literal(CANARY).label("card"), sa.literal("ada").label("to")))


def as_a_row(connection: sa.Connection) -> None:
    add_job(connection, kind="charge", args=PLACE)


WAYS = [by_function, by_trigger, by_bare_kind, by_bare_kind_in_bulk, by_bare_kind_from_a_query, as_a_row]


@pytest.fixture
def shown(rows: sa.Connection, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the commands print of every job there is, on both channels."""

    def show(*commands: str) -> str:
        capsys.readouterr()
        for id_ in rows.scalars(sa.text("SELECT id FROM jobq.all_jobs")):
            assert [run(each.format(id=id_).split()) for each in commands] == [0] * len(commands)
        return "".join(capsys.readouterr())

    return show


def publish_all(connection: sa.Connection) -> None:
    """What a worker says of its handlers when it starts."""
    publish(connection, map(Published.of, app.handlers.values()), [])


@pytest.mark.parametrize("enqueue", WAYS)
def test_a_job_is_shown_without_what_its_handler_calls_secret_whoever_has_enqueued_it(
    enqueue: Callable[[sa.Connection], None], engine: sa.Engine, rows: sa.Connection, shown: Callable[..., str]
) -> None:
    with engine.begin() as connection:
        enqueue(connection)
    assert CANARY in shown("show {id}")  # nobody knows the handler yet

    publish_all(rows)

    said = shown(*SHOWING)
    assert CANARY not in said
    assert said.count('"card": "***"') == 2
    assert said.count('"to": "ada"') == 2


def test_what_an_ended_job_has_given_is_masked_too(rows: sa.Connection, shown: Callable[..., str]) -> None:
    told: dict[str, Any] = {"checkpoint": {"card": CANARY, "at": 1}, "token": CANARY}
    add_ended(rows, "done", kind="charge", args=PLACE, meta=told, result={"card": CANARY, "number": 2})
    publish_all(rows)

    said = shown(*SHOWING)

    assert CANARY not in said
    assert '"checkpoint": {"at": 1, "card": "***"}' in said
    assert '"token": "***"' in said
    assert '"number": 2' in said


def test_args_that_python_cannot_parse_are_shown_without_secrets(
    rows: sa.Connection, shown: Callable[..., str]
) -> None:
    rest = f'"auth": [{{"password": ["{CANARY}", {{}}], "user": "ada"}}]'
    for odd in ("9" * 5_000, "[" * 200 + "]" * 200):
        rows.exec_driver_sql(f'SELECT jobq.enqueue(\'charge\', \'{{"card": "{CANARY}", "n": {odd}, {rest}}}\')')
    publish_all(rows)

    said = shown("show {id}", "show {id} --json")

    assert CANARY not in said
    assert said.count('"auth": [{"user": "ada", "password": "***"}], "card": "***"}') == 2
    assert said.count("9" * 5_000) == 2


def test_rows_that_are_nested_deeper_than_jobq_writes_are_shown_all_the_same(
    rows: sa.Connection, shown: Callable[..., str]
) -> None:
    deep = sa.cast(sa.cast("[" * 900 + "]" * 900, sa.Text), JSONB)
    meta = sa.func.jsonb_build_object("x", deep, "checkpoint", sa.func.jsonb_build_object("card", deep))
    add_ended(rows, "done", kind="charge", args=PLACE, meta=meta, result=deep, errors=deep)
    publish_all(rows)

    assert CANARY not in shown("show {id}", "show {id} --json")


def test_what_the_row_notes_counts_beside_what_workers_say(rows: sa.Connection, shown: Callable[..., str]) -> None:
    """The handler may have had other parameters when the job was enqueued."""
    add_job(rows, kind="charge", args={**PLACE, "iban": CANARY}, meta={"secret": ["iban", 7]})
    publish_all(rows)

    said = shown("show {id}", "show {id} --json")

    assert CANARY not in said
    assert '"secret": ["iban", 7]' in said


def test_workers_publish_the_secrets_of_their_handlers_and_what_becomes_of_them(rows: sa.Connection) -> None:
    def published() -> dict[str, str | None]:
        return {row.kind: row.secrets for row in rows.execute(sa.select(kinds.c.kind, kinds.c.secrets))}

    publish_all(rows)
    assert published() == {"charge": "card,pin", "mail": None}

    later = jobq.App()
    later.handler("charge")(mail.function)
    publish(rows, map(Published.of, later.handlers.values()), [])
    assert published() == {"charge": None, "mail": None}


def test_other_kinds_are_shown_as_they_are(rows: sa.Connection, shown: Callable[..., str]) -> None:
    add_job(rows, kind="mail", args=PLACE)
    publish_all(rows)

    assert shown("show {id}").count(CANARY) == 1
