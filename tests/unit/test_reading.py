from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobq.model import Failure, State
from jobq.reading import failures_of, job_of, object_of

AT = datetime(2026, 3, 1, tzinfo=UTC)
ROW = {
    "id": 1, "queue": "q", "kind": "k", "state": "dead", "priority": 1, "run_at": AT, "attempt": 1, "failures": 1,
    "max_attempts": None, "created_at": AT,
}  # fmt: skip
DEEP = "[" * 600 + "]" * 600


def test_a_row_becomes_a_job() -> None:
    job = job_of({**ROW, "args": '{"n": 1}', "meta": "{}", "errors": "[]"})

    assert (job.state, job.args, job.meta, job.errors) == (State.DEAD, {"n": 1}, {}, ())


def test_a_row_without_its_large_columns_becomes_a_job_too() -> None:
    job = job_of(ROW)

    assert (job.args, job.meta, job.errors) == (None, {}, ())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"n": ' + "9" * 5000 + "}", id="too many digits"),
        pytest.param('{"n": ' + "9" * 400 + ".5}", id="beyond a float"),
        pytest.param('{"a": ' * 100_000 + "1" + "}" * 100_000, id="too deep"),
        pytest.param("[1]", id="no object"),
        pytest.param("{", id="no JSON"),
        pytest.param(None, id="not read"),
    ],
)
def test_what_python_cannot_parse_is_none(text: str | None) -> None:
    assert object_of(text) is None


def test_a_result_that_is_nested_deeper_than_jobq_writes_is_none() -> None:
    """Whoever gets it would fail where it goes into it."""
    assert job_of({**ROW, "result": DEEP}).result is None
    assert job_of({**ROW, "result": "[" * 90 + "]" * 90}).result is not None


def test_failures_are_read_as_they_are_written() -> None:
    text = (
        '[{"attempt": 2, "at": "2026-01-02T03:04:05+00:00", "worker": "w", "error": "E", "message": "m",'
        ' "traceback": "T"}]'
    )

    assert failures_of(text, otherwise_at=AT) == (
        Failure(2, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "w", "E", "m", "T"),
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [
        pytest.param("[7]", Failure(0, AT, None, "unreadable", "7"), id="no object"),
        pytest.param("[{}]", Failure(0, AT, None, "unreadable", ""), id="an empty one"),
        pytest.param('[{"at": "2026-01-02"}]', Failure(0, AT, None, "unreadable", ""), id="a naive time"),
        pytest.param('[{"at": 5, "attempt": "x"}]', Failure(0, AT, None, "unreadable", ""), id="wrong types"),
        pytest.param("{", Failure(0, AT, None, "unreadable", "{"), id="no JSON"),
        pytest.param(DEEP, Failure(0, AT, None, "unreadable", DEEP), id="nested deeper than jobq writes"),
    ],
)
def test_a_failure_that_jobq_has_not_written_is_shown_as_it_stands(text: str, read: Failure) -> None:
    assert failures_of(text, otherwise_at=AT) == (read,)
