"""What kind of trouble an error is, over the errors that psycopg and SQLAlchemy really raise, built by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
import sqlalchemy.exc as sa_exc
from psycopg import errors as pg

from jobq.faults import can_wait_out, is_connection_failure, is_refusal, said_briefly, sqlstate

LOST = "consuming input failed: server closed the connection unexpectedly"
TOO_MANY = (
    'connection failed: connection to server at "127.0.0.1", port 5 failed: FATAL:  sorry, too many clients already'
)
STARTING = (
    'connection failed: connection to server at "127.0.0.1", port 5 failed: FATAL:  the database system is starting up'
)
PASSWORD = 'connection failed: FATAL:  password authentication failed for user "jobq"'
NO_DATABASE = 'connection failed: FATAL:  database "shop" does not exist'
NO_HBA = 'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.1"'
NO_LOGIN = 'connection failed: FATAL:  role "jobq" is not permitted to log in'


def wrapped(error: psycopg.Error, *, invalidated: bool = False) -> sa_exc.DBAPIError:
    """The error as SQLAlchemy raises it from a statement."""
    made = sa_exc.DBAPIError.instance(
        "SELECT 1", {"secret": "hunter2"}, error, psycopg.Error, connection_invalidated=invalidated
    )
    assert isinstance(made, sa_exc.DBAPIError)
    return made


def of_state(state: str) -> psycopg.Error:
    """The class that psycopg has for a SQLSTATE, or its base class with that SQLSTATE."""
    try:
        return pg.lookup(state)("said by the server")
    except KeyError:
        return type("Other", (psycopg.DatabaseError,), {"sqlstate": state})("said by the server")


# sqlstate: the connection failed; it passes by itself; the server refuses this role
BY_STATE = {
    "08000": (True, True, False),
    "08006": (True, True, False),
    "08P01": (True, True, False),
    "57P01": (True, True, False),
    "57P02": (True, True, False),
    "57P03": (True, True, False),
    "57P05": (True, True, False),
    "25P03": (True, True, False),
    "25P04": (True, True, False),
    "57014": (False, True, False),
    "40001": (False, True, False),
    "40P01": (False, True, False),
    "53100": (False, True, False),
    "53200": (False, True, False),
    "53300": (False, True, False),
    "55P03": (False, True, False),
    "25006": (False, True, False),
    "0A000": (False, True, False),
    "22P05": (False, False, False),
    "22P02": (False, False, False),
    "22003": (False, False, False),
    "23505": (False, False, False),
    "23514": (False, False, False),
    "42P01": (False, False, False),
    "42703": (False, False, False),
    "42601": (False, False, False),
    "42501": (False, False, True),
    "28000": (False, False, True),
    "28P01": (False, False, True),
    "3D000": (False, False, True),
    "XX000": (False, False, False),
    "25P02": (False, False, False),
}


@pytest.mark.parametrize(("state", "kind"), BY_STATE.items(), ids=BY_STATE)
@pytest.mark.parametrize("form", [of_state, lambda state: wrapped(of_state(state))], ids=["psycopg", "sqlalchemy"])
def test_what_the_server_says_is_told_by_its_sqlstate(form: Any, state: str, kind: tuple[bool, bool, bool]) -> None:
    error = form(state)

    assert sqlstate(error) == state
    assert (is_connection_failure(error), can_wait_out(error), is_refusal(error)) == kind


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError(LOST),
        psycopg.OperationalError(TOO_MANY),
        psycopg.OperationalError(STARTING),
        psycopg.InterfaceError("the connection is closed"),
        pg.ConnectionTimeout("connection timeout expired"),
        wrapped(psycopg.OperationalError(LOST), invalidated=True),
        wrapped(psycopg.OperationalError(LOST)),
        wrapped(psycopg.OperationalError(TOO_MANY)),
        wrapped(psycopg.InterfaceError("the connection is closed")),
        wrapped(psycopg.Error("anything"), invalidated=True),
        sa_exc.TimeoutError("QueuePool limit reached"),
        ConnectionResetError(104, "reset"),
        ConnectionError("the server did not answer within 15 s"),
        BrokenPipeError(),
        OSError(-2, "Name or service not known"),
    ],
    ids=lambda error: f"{type(error).__name__}: {str(error)[:40]}",
)
def test_a_lost_or_unreachable_server_is_a_connection_failure(error: Exception) -> None:
    assert is_connection_failure(error)
    assert can_wait_out(error)
    assert not is_refusal(error)


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        SystemExit(),
        ValueError("no"),
        RuntimeError("FATAL mistake of ours"),
        psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"),
        psycopg.ProgrammingError("the query has 2 placeholders but 1 parameters were passed"),
        wrapped(psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")),
        sa_exc.ArgumentError("no such thing"),
        sa_exc.InvalidRequestError("this transaction is closed"),
        sa_exc.StatementError("a bind is missing", "SELECT 1", {}, ValueError("x")),
    ],
    ids=lambda error: f"{type(error).__name__}: {str(error)[:40]}",
)
def test_a_cancelled_wait_or_a_mistake_of_ours_is_neither(error: BaseException) -> None:
    assert not is_connection_failure(error)
    assert not can_wait_out(error)
    assert not is_refusal(error)


@pytest.mark.parametrize("text", [PASSWORD, NO_DATABASE, NO_HBA, NO_LOGIN])
@pytest.mark.parametrize("form", [psycopg.OperationalError, lambda text: wrapped(psycopg.OperationalError(text))])
def test_a_refused_login_is_a_refusal_although_it_has_no_sqlstate(form: Any, text: str) -> None:
    assert is_refusal(form(text))


def test_f69_the_brief_word_has_no_statement_no_parameters_and_one_line() -> None:
    said = said_briefly(wrapped(psycopg.OperationalError("first line\n\tsecond line  ")))

    assert said == "first line second line"


def test_an_error_without_text_is_called_by_its_class() -> None:
    assert said_briefly(ConnectionResetError()) == "ConnectionResetError"
    assert said_briefly(wrapped(psycopg.OperationalError(""))) == "OperationalError"


def test_an_unreachable_server_is_what_psycopg_raises_for_one() -> None:
    engine = sa.create_engine("postgresql+psycopg://jobq@127.0.0.1:1/shop?connect_timeout=2")

    with pytest.raises(sa_exc.OperationalError) as caught:
        engine.connect()

    assert is_connection_failure(caught.value)
    assert not is_refusal(caught.value)
