"""What is found in SQL text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.checking import Arguments, find_calls, find_sql

NOTHING = Arguments((), {})


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("INSERT INTO jobq.jobs (queue, kind) VALUES ('q', 'a'), ('q', 'b')", ["a", "b"]),
        ('insert into "jobq"."jobs"(kind) values (\'a\'::text)', ["a"]),
        ("INSERT INTO jobq.jobs (args, kind) SELECT jsonb_build_object('n', f(1, 2)), 'a' FROM t", ["a"]),
        ("INSERT INTO jobq.jobs (kind) SELECT kind FROM t", [None]),
        ("INSERT INTO jobq.jobs (kind) VALUES ('a' || x)", [None]),
        ("INSERT INTO jobq.jobs (kind) VALUES (%s)", [None]),
        ("INSERT INTO jobq.jobs VALUES (1, 'a')", [None]),
        ("INSERT INTO jobq.jobs SELECT * FROM t", [None]),
        ("SELECT jobq.enqueue('it''s')", ["it's"]),
        ("SELECT jobq.enqueue(args => '{}', kind => 'a')", ["a"]),
        ("SELECT jobq.enqueue(kind := 'a')", ["a"]),
        ("SELECT jobq.enqueue(:kind)", [None]),
        ("SELECT x, JOBQ.Enqueue('a'), jobq . enqueue('b')", ["a", "b"]),
        ("CREATE FUNCTION t() RETURNS trigger AS $body$ BEGIN PERFORM jobq.enqueue('a'); END $body$", ["a"]),
        ("CREATE FUNCTION jobq.enqueue(kind text, args jsonb) RETURNS bigint AS $$ SELECT 1 $$", []),
        ("DROP FUNCTION jobq.enqueue(text, jsonb)", []),
        ("-- jobq.enqueue('a')\n/* jobq.enqueue('b') */ SELECT 'jobq.enqueue(''c'')'", []),
        ("INSERT INTO other.jobs (kind) VALUES ('a')", []),
        ("SELECT kind FROM jobq.jobs", []),
        ("INSERT INTO jobq.jobs (kind", [None]),
        ("SELECT jobq.enqueue(", [None]),
    ],
)
def test_the_kinds_of_inserted_jobs(sql: str, kinds: list[str | None]) -> None:
    assert [each.kind for each in find_sql(sql, "x.sql")] == kinds


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("'a'", NOTHING),
        ("'a', '{\"n\": 1}'", Arguments((), {"n": 1})),
        ("'a', '{\"n\": 1}'::jsonb, 'q'", Arguments((), {"n": 1})),
        ("kind => 'a', args => '{\"n\": [1]}'", Arguments((), {"n": [1]})),
        ("'a', jsonb_build_object('n', 1)", None),
        ("'a', '[1]'", None),
        ("'a', 'no json'", None),
    ],
)
def test_args_that_are_written_as_json_are_read(call: str, args: Arguments | None) -> None:
    (each,) = find_sql(f"SELECT jobq.enqueue({call})", "x.sql")

    assert (each.args, each.as_json) == (args, True)


def test_lines_are_those_of_the_statements() -> None:
    sql = "SELECT 1;\n\n/* two\nlines */ SELECT jobq.enqueue('a');\nINSERT INTO\n  jobq.jobs (kind)\n  VALUES ('b')"

    assert [(each.line, each.kind) for each in find_sql(sql, "x.sql")] == [(4, "a"), (6, "b")]


@given(st.text(alphabet="jobq.enu'\"(),$-/*= \nINSERTinto", max_size=200))
def test_any_text_is_read_to_its_end(text: str) -> None:
    find_sql(f"jobq.jobs {text} jobq.enqueue('a')", "x.sql")


@given(st.text(max_size=200))
def test_a_source_gives_an_answer_or_a_syntax_error(text: str) -> None:
    try:
        find_calls(text, "x.py")
    except (SyntaxError, ValueError):
        return
