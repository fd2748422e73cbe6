"""The texts of many rows at once: the same as one by one, or left to be looked at one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.codec import MAX_BYTES, Codec


def send_email(to: str, n: int = 0, *, copies: list[str] | None = None) -> None: ...


def keep(what: Any) -> None: ...


CODEC = Codec.of(send_email)

ROWS = st.fixed_dictionaries(
    {"to": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))},
    optional={"n": st.integers(), "copies": st.none() | st.lists(st.text("ab\\\"'é\n"))},
)


@given(st.lists(ROWS))
def test_many_rows_have_the_texts_that_each_has(rows: list[dict[str, Any]]) -> None:
    assert CODEC.encode_together(rows) == ",".join([CODEC.encode((), row) for row in rows])


@pytest.mark.parametrize(
    "row",
    [{"to": 5}, {}, {"to": "a", "too": "b"}, {"to": "a\0b"}, {"to": "a\ud800"}, {"to": "a" * MAX_BYTES}, {1: "a"}],
    ids=["type", "missing", "unknown", "NUL", "surrogate", "long", "no name"],
)
def test_a_row_that_does_not_fit_leaves_all_to_be_looked_at(row: dict[Any, Any]) -> None:
    assert CODEC.encode_together([{"to": "a"}, row]) is None


def test_what_only_looks_like_nul_is_taken() -> None:
    assert CODEC.encode_together([{"to": r"\u0000"}]) == r'{"to":"\\u0000"}'


def test_rows_that_may_be_deep_are_looked_at_one_by_one() -> None:
    assert Codec.of(keep).encode_together([{"what": 1}]) is None
