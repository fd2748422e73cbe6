"""Looking at what was enqueued."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.orm import Session

import jobq
from jobq.testing import assert_enqueued, drain, enqueued

app = jobq.App()
AT = datetime(2030, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEY = UUID(int=7)
BARE = jobq.kind("bare", queue="q")


@app.handler("email.send", queue="email")
def send(to: str, subject: str = "Hello", key: UUID | None = None, count: int = 1) -> None: ...


@app.handler("other")
def other() -> None: ...


@pytest.fixture
def waiting(session: Session) -> Session:
    jobq.enqueue(session, send, to="ada", key=KEY)
    jobq.enqueue(session, send.options(run_at=AT), to="bob", subject="Bye", count=2)
    jobq.enqueue(session, send.options(queue="slow", delay=HOUR), to="bob")
    jobq.enqueue(session, BARE, n=[1], x={"y": None})
    return session


def test_what_waits_is_listed_in_the_order_of_the_enqueues(waiting: Session) -> None:
    jobq.enqueue(waiting, other)
    drain(app, waiting, queues=["default"])

    assert [job.args and job.args.get("to") for job in enqueued(waiting, send)] == ["ada", "bob", "bob"]
    assert [job.kind for job in enqueued(waiting)] == ["email.send"] * 3 + ["bare"]


@pytest.mark.parametrize(
    ("what", "options", "count"),
    [
        pytest.param(send, {}, 3, id="any"),
        pytest.param(send, {"to": "ada"}, 1, id="some args"),
        pytest.param(send, {"to": "bob"}, 2, id="two of them"),
        pytest.param(send, {"to": "ada", "subject": "Hello"}, 1, id="a default that was not passed"),
        pytest.param(send, {"subject": "Hello"}, 2, id="the default alone"),
        pytest.param(send, {"key": KEY}, 1, id="of a type that is text in JSON"),
        pytest.param(send, {"key": None}, 2, id="None by default"),
        pytest.param(send, {"to": "zoe"}, 0, id="none"),
        pytest.param(send, {"queue": "slow"}, 1, id="the queue"),
        pytest.param(send, {"run_at": AT}, 1, id="the time"),
        pytest.param(send, {"run_at": HOUR}, 1, id="the delay"),
        pytest.param(send, {"run_at": timedelta(0)}, 1, id="now"),
        pytest.param(send.args("bob"), {}, 1, id="exactly these args"),
        pytest.param(send.args("bob", count=2, subject="Bye"), {}, 1, id="an arg that is named as an option"),
        pytest.param(BARE, {"n": [1]}, 1, id="a kind without its handler"),
        pytest.param(other, {}, 0, id="another handler"),
    ],
)
def test_jobs_are_chosen_by_args_queue_and_time(
    what: Any, options: dict[str, Any], count: int, waiting: Session
) -> None:
    assert len(assert_enqueued(waiting, what, count=count, **options)) == count

    with pytest.raises(AssertionError):
        assert_enqueued(waiting, what, count=count + 1, **options)


def test_the_error_shows_what_waits_instead(waiting: Session) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_enqueued(waiting, send, to="zoe", queue="email")

    said = str(failed.value).splitlines()
    assert said[0] == "1 job of email.send with to='zoe', queue email expected, there are 0; what waits:"
    assert "email.send {'to': 'bob'} in queue slow" in said[3]
    assert len(said) == 5


def test_the_error_of_an_empty_queue_says_so(session: Session) -> None:
    with pytest.raises(AssertionError, match="2 jobs of other expected, there are 0; nothing waits"):
        assert_enqueued(session, other, count=2)


def test_a_long_list_is_cut(session: Session) -> None:
    jobq.enqueue_many(session, other, [{}] * 30)

    with pytest.raises(AssertionError, match="and 10 more"):
        assert_enqueued(session, other)


def test_an_argument_that_the_handler_cannot_have_is_an_error_of_the_test(session: Session) -> None:
    with pytest.raises(jobq.ArgsError, match="unknown argument"):
        assert_enqueued(session, send, too="x", count=0)
    with pytest.raises(jobq.ArgsError, match="expected str, got int 5"):
        assert_enqueued(session, send, to=5, count=0)
    with pytest.raises(jobq.OptionTypeError, match="expected a function with"):
        enqueued(session, "email.send")  # type: ignore[arg-type]


def test_an_error_says_what_waits_without_what_handlers_call_secret(session: Session) -> None:
    shop = jobq.App()

    @shop.handler("charge")
    def charge(card: jobq.Secret[str], to: str = "ada") -> None: ...

    jobq.enqueue(session, charge, card="k4nary")
    jobq.enqueue(session, jobq.kind("charge", queue="default"), card="k4nary")
    jobq.enqueue(session, jobq.kind("pay", queue="default"), pay={"password": "k4nary"}, to="bob")

    for what, given in ((charge, {"card": "k4nary2"}), (charge.args(card="k4nary2"), {})):
        with pytest.raises(AssertionError) as caught:
            assert_enqueued(session, what, **given)  # type: ignore[arg-type]

        assert "k4nary" not in str(caught.value)
        assert "1 job of charge with card='***' expected, there are 0; what waits:" in str(caught.value)
        assert str(caught.value).count("{'card': '***'}") == 2
        assert "{'to': 'bob', 'pay': {'password': '***'}}" in str(caught.value)
