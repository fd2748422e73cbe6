"""The two readers of an outcome's text, in Python and in SQL, are one."""

from __future__ import annotations

from itertools import product

import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql import ARRAY

from jobq.outcomes import WORDS, read_outcome
from jobq.statements.outcome import word_of

ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
ALMOST = st.builds(lambda *parts: "".join(parts), st.sampled_from(WORDS), st.sampled_from(["", ":", " :", "::"]), ANY)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | ANY | ALMOST, min_size=1, max_size=60))
def test_python_and_sql_read_the_same_word_in_any_text(connection: sa.Connection, texts: list[str | None]) -> None:
    assert words_of(connection, texts) == [read_outcome(text) for text in texts]


def test_nothing_around_a_word_counts_in_one_of_them_alone(connection: sa.Connection) -> None:
    """Python's idea of white space is not PostgreSQL's."""
    spaces = ["", *" \t\n\r\f\v\x1c\x1f\x85\xa0\u2003\u2028\u3000\u200b"]
    words = [*WORDS, "OK", "okay", ""]
    parts = product(spaces, words, spaces, ["", ":", ": x", "\uff1a"])
    texts = ["".join(each) for each in parts]

    assert words_of(connection, [None, *texts]) == [read_outcome(text) for text in (None, *texts)]


def words_of(connection: sa.Connection, texts: list[str | None]) -> list[str]:
    given = sa.func.unnest(sa.bindparam("texts", type_=ARRAY(sa.Text))).table_valued(
        sa.column("text", sa.Text), with_ordinality="n"
    )
    row = given.render_derived(name="row")
    return list(connection.scalars(sa.select(word_of(row.c.text)).order_by(row.c.n), {"texts": texts}))
