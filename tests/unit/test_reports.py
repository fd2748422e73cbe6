from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_values import claimed

from jobq.context import Context, Transaction, view_of
from jobq.errors import ArgsError, LeaseLostError, OptionError, OptionTypeError
from jobq.model import Progress
from jobq.notify import Word, parse, word_in
from jobq.outcomes import MOST_RESULT_BYTES, Fail, Ok, Skip
from jobq.reading import progress_of
from jobq.reports import MOST_BYTES, merged

Reported = list[tuple[str, str]]


def context(reported: Reported, **columns: Any) -> Context:
    job = claimed(7, attempt=2, **columns)
    view = view_of(job, max_attempts=5)
    return Context(view, None, Transaction, meta=job.meta, report=lambda *report: reported.append(report))


def test_progress_is_reported_with_its_attempt() -> None:
    reported: Reported = []

    context(reported).progress(0.4, "page 4 of 10")

    [(name, text)] = reported
    assert name == "progress"
    assert progress_of(json.loads(text)) == Progress(0.4, "page 4 of 10", 2)


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, True + 0.0, 1.0000000000000002, -1e-17])
def test_any_number_from_0_to_1_is_a_fraction(fraction: float) -> None:
    reported: Reported = []

    context(reported).progress(fraction)

    assert 0 <= json.loads(reported[0][1])["fraction"] <= 1


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param((1.1,), OptionError, id="more than all"),
        pytest.param((-0.1,), OptionError, id="negative"),
        pytest.param((float("nan"),), OptionError, id="nan"),
        pytest.param((float("inf"),), OptionError, id="infinite"),
        pytest.param((40,), OptionError, id="percent"),
        pytest.param(("0.4",), OptionTypeError, id="text"),
        pytest.param((True,), OptionTypeError, id="bool"),
        pytest.param((None,), OptionTypeError, id="none"),
        pytest.param((0.5, 7), OptionTypeError, id="message"),
    ],
)
def test_what_is_no_progress_is_refused_and_not_reported(args: Any, error: type[Exception]) -> None:
    reported: Reported = []

    with pytest.raises(error, match="expected"):
        context(reported).progress(*args)

    assert reported == []


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_any_message_is_stored_bounded_and_clean(message: str) -> None:
    reported: Reported = []

    context(reported).progress(0.5, message)

    kept = json.loads(reported[0][1])["message"]
    kept.encode()
    assert len(kept) <= 200
    assert "\0" not in kept


def test_a_checkpoint_is_taken_as_it_is_at_the_call() -> None:
    reported: Reported = []
    state = {"page": 4, "seen": [1, 2]}

    of_job = context(reported)
    of_job.checkpoint(state)
    state["seen"].append(3)  # type: ignore[attr-defined]

    assert json.loads(reported[0][1]) == {"page": 4, "seen": [1, 2]}
    assert of_job.last_checkpoint == {"page": 4, "seen": [1, 2]}


@pytest.mark.parametrize("meta", ["{}", '{"checkpoint": 7}', "[]", "no json"])
def test_there_is_no_checkpoint_at_first(meta: str) -> None:
    assert context([], meta=meta).last_checkpoint is None


def test_the_last_checkpoint_is_that_of_an_earlier_attempt_until_there_is_a_new_one() -> None:
    of_job = context([], meta='{"timeout": 5, "checkpoint": {"page": 3}}')

    assert of_job.last_checkpoint == {"page": 3}
    of_job.checkpoint({"page": 4})
    assert of_job.last_checkpoint == {"page": 4}


def test_a_mapping_of_another_class_is_kept_too() -> None:
    of_job = context([])

    of_job.checkpoint(MappingProxyType({"page": 4}))

    assert of_job.last_checkpoint == {"page": 4}


BAD_VALUES = [
    pytest.param({"a": {1, 2}}, r"checkpoint\.a", id="set"),
    pytest.param({1: "a"}, "checkpoint: key 1", id="key"),
    pytest.param({"a": [0, float("nan")]}, r"checkpoint\.a\[1\]", id="nan"),
    pytest.param({"a": "\0"}, r"checkpoint\.a.*NUL", id="nul"),
    pytest.param({"a": "\ud800"}, r"checkpoint\.a.*surrogate", id="surrogate"),
    pytest.param({"a": "x" * MOST_BYTES}, "checkpoint: .*bytes of JSON, the limit is 65,536", id="large"),
    pytest.param([1], "checkpoint: expected a dict, got list", id="list"),
    pytest.param(None, "checkpoint: expected a dict", id="none"),
]


@pytest.mark.parametrize(("state", "message"), BAD_VALUES)
def test_a_checkpoint_that_cannot_be_kept_is_refused_with_its_place(state: Any, message: str) -> None:
    reported: Reported = []

    with pytest.raises(ArgsError, match=message):
        context(reported).checkpoint(state)

    assert reported == []


def test_a_lost_attempt_hears_so_at_its_checkpoint_and_not_at_its_progress() -> None:
    reported: Reported = []
    of_job = context(reported)
    of_job.cancel()
    of_job.checkpoint({"page": 1})  # told to stop, but it counts
    of_job.lose()

    with pytest.raises(LeaseLostError, match=r"job 7 \(email.send\): attempt 2 counts no more"):
        of_job.checkpoint({"page": 2})
    of_job.progress(0.5)

    assert [name for name, _ in reported] == ["checkpoint", "progress"]


def test_reports_are_merged_into_one_object() -> None:
    text = merged({"progress": '{"fraction":1}', "checkpoint": '{"a":[]}'})

    assert json.loads(text) == {"progress": {"fraction": 1}, "checkpoint": {"a": []}}


@pytest.mark.parametrize("value", [None, 7, [], {}, {"fraction": "1"}, {"fraction": True}, {"fraction": 2}])
def test_what_jobq_has_not_written_is_no_progress(value: Any) -> None:
    assert progress_of(value) is None


@pytest.mark.parametrize("kind", [Ok, Fail, Skip])
def test_an_outcome_carries_a_result_as_json(kind: type[Ok]) -> None:
    rows = [1, 2]
    outcome = kind("text", result={"rows": rows})
    rows.append(3)

    assert outcome.result_json == '{"rows":[1,2]}'
    assert str(outcome) == f"{kind.word}: text"
    assert outcome == kind("text", result={"rows": (1, 2)})
    assert outcome != kind("text")
    assert hash(outcome) == hash(kind("text", result={"rows": [1, 2]}))
    assert repr(outcome) == f"""{kind.__name__}('text', result={{"rows":[1,2]}})"""


@pytest.mark.parametrize("result", [0, False, "", [], {}, "a", 1.5, [None], {"a": None}])
def test_any_json_value_but_none_is_a_result(result: Any) -> None:
    assert json.loads(str(Ok(result=result).result_json)) == result
    assert Ok(result=None).result_json is None


def test_a_result_that_is_too_large_or_no_json_is_refused_where_it_is_made() -> None:
    assert Ok(result="x" * (MOST_RESULT_BYTES - 2)).result_json is not None
    with pytest.raises(ArgsError, match=r"result: 65,537 bytes of JSON, the limit is 65,536"):
        Ok(result="x" * (MOST_RESULT_BYTES - 1))
    with pytest.raises(ArgsError, match=r"result\.a: set .* is not a JSON value"):
        Ok(result={"a": {1}})


@pytest.mark.parametrize(
    ("payload", "word"),
    [("taken|1", Word("taken", 1)), ("awaited|42", Word("awaited", 42)), (f"taken|{2**63 - 1}", ("taken", 2**63 - 1))],
)
def test_a_word_is_read_and_is_no_place_in_a_lane(payload: str, word: Word) -> None:
    assert word_in(payload) == word
    assert parse(payload) is None


@pytest.mark.parametrize(
    "payload",
    ["", "taken", "taken|", "taken|-1", "taken|1|2", "taken|１", "Taken|1", "taken|1\n", "q|1|0", "taken|" + "9" * 20],
)
def test_a_word_that_jobq_would_not_write_is_ignored(payload: str) -> None:
    assert word_in(payload) is None
