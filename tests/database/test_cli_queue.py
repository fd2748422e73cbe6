"""`jobq pause`, `jobq resume`, `jobq queue`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_job

from jobq.tables import queues, slots

pytestmark = pytest.mark.duty("operate")

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rows(rows: sa.Connection) -> sa.Connection:
    """With a job of a queue."""
    add_job(rows, queue="email")
    return rows


def test_a_queue_is_paused_for_a_while_and_resumed(rows: sa.Connection, jobq: Call) -> None:
    code, out, err = jobq("pause", "email", "--for", "90m", "--reason", "the provider is down")

    assert (code, err) == (0, "")
    assert out.startswith("queue email is paused until 2")
    left = rows.execute(sa.select(queues.c.paused_until - NOW, queues.c.pause_reason)).one()
    assert 89 * 60 < left[0].total_seconds() <= 90 * 60
    assert left[1] == "the provider is down"
    assert "queue email is paused until 2" in jobq("stats")[1]
    assert ": the provider is down" in jobq("stats")[1]
    assert jobq("resume", "email") == (0, "queue email goes on\n", "")
    assert rows.scalar(sa.select(queues.c.paused_until)) is None
    assert jobq("resume", "email")[::2] == (0, "queue email was not paused (see: jobq queue list)\n")


def test_a_pause_without_a_length_lasts_until_it_is_resumed(rows: sa.Connection, jobq: Call) -> None:
    assert jobq("pause", "email") == (0, "queue email is paused until it is resumed\n", "")

    assert "queue email is paused until it is resumed" in jobq("stats")[1]
    assert "until it is resumed" in jobq("queue", "list")[1]
    assert json.loads(jobq("pause", "email", "--json")[1]) == {
        "queue": "email",
        "paused_until": None,
        "pause_reason": None,
    }
    assert json.loads(jobq("resume", "email", "--json")[1]) == {"queue": "email", "resumed": True}


def test_f65_a_mistyped_queue_is_paused_with_a_note(rows: sa.Connection, jobq: Call) -> None:
    code, _, err = jobq("pause", "emial", "--for", "1h")

    assert (code, err) == (0, "no job, handler or setting names queue emial (known: email)\n")


@pytest.mark.parametrize(
    "arguments",
    ["pause", "pause a;b", "pause q --for soon", "pause q --for 0s", "pause q --for 9000000d", "queue set q",
     "queue set q --fifo --concurrency 3", "queue set q --weight 0", "queue set q --concurrency 1001"],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_changes_nothing(rows: sa.Connection, jobq: Call, arguments: str) -> None:
    code, out, err = jobq(*arguments.split())

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert rows.scalar(sa.select(sa.func.count()).select_from(queues)) == 0


def test_f65_a_mistyped_queue_is_set_with_a_note(rows: sa.Connection, jobq: Call) -> None:
    code, out, err = jobq("queue", "set", "emial", "--weight", "3")

    assert (code, out) == (0, "queue emial: weight 3, no limit\n")
    assert err == "no job, handler or setting names queue emial (known: email)\n"


def test_what_is_to_be_set_is_asked_for_by_the_names_of_the_options(jobq: Call) -> None:
    nothing, both = jobq("queue", "set", "email"), jobq("queue", "set", "email", "--fifo", "--concurrency", "2")

    assert nothing[2].startswith("error: give --weight, --fifo, --no-fifo or --concurrency (see: ")
    assert both[2].startswith("error: --fifo is one job at a time already; it does not go with --concurrency (see: ")


def test_a_queue_is_set_bit_by_bit(rows: sa.Connection, jobq: Call) -> None:
    said = [
        jobq("queue", "set", "email", *options.split())
        for options in ("--weight 3", "--concurrency 4", "--fifo", "--no-fifo", "--concurrency 2", "--concurrency 0")
    ]

    assert said == [
        (0, f"queue email: weight 3, {limit}\n", "")
        for limit in ("no limit", "concurrency 4", "fifo", "no limit", "concurrency 2", "no limit")
    ]
    assert rows.execute(sa.select(queues.c.fifo, queues.c.concurrency)).one() == (False, None)
    assert rows.scalar(sa.select(sa.func.count()).select_from(slots)) == 4


def test_queues_are_listed_with_what_runs(rows: sa.Connection, jobq: Call) -> None:
    assert jobq("queue", "list")[1:] == (
        "", "no queue is set (app.queue declares one, jobq queue set sets one)\n",
    )  # fmt: skip
    jobq("queue", "set", "apollo", "--fifo")
    jobq("queue", "set", "email", "--weight", "3", "--concurrency", "4")
    jobq("pause", "images")
    rows.execute(sa.update(slots).where(slots.c.queue == "email", slots.c.n < 3).values(worker_id=1))

    listed = [line.split() for line in jobq("queue", "list")[1].splitlines()]

    assert listed == [
        ["queue", "weight", "limit", "running", "paused"],
        ["apollo", "1", "fifo", "0/1"],
        ["email", "3", "concurrency", "4", "2/4"],
        ["images", "1", "no", "limit", "-", "until", "it", "is", "resumed"],
    ]
    whole = [json.loads(line) for line in jobq("queue", "list", "--json")[1].splitlines()]
    assert whole[1] == {
        "name": "email", "weight": 3, "fifo": False, "concurrency": 4, "taken": 2, "paused_until": None,
        "pause_reason": None,
    }  # fmt: skip
