"""The GRANTs of each duty, as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobq.errors import OptionError
from jobq.grants import DUTIES, Duty, grants
from jobq.tables import all_jobs, metadata
from jobq_cli.app import run

COLUMNS = {table.name: set(table.c.keys()) for table in (*metadata.sorted_tables, all_jobs)}


@pytest.mark.parametrize("duty", Duty)
def test_rights_are_on_what_there_is(duty: Duty) -> None:
    for table, privileges in DUTIES[duty].items():
        for columns in privileges.values():
            assert table == "schema_version" or set(columns) <= COLUMNS[table]


def test_who_reads_reads_every_table_and_changes_none() -> None:
    reading = DUTIES[Duty.READ]

    assert set(reading) == {*COLUMNS, "schema_version"}
    assert {privilege for each in reading.values() for privilege in each} == {"SELECT"}


def test_a_duty_with_less_has_nothing_that_one_with_more_lacks() -> None:
    assert set(DUTIES[Duty.ENQUEUE]) <= set(DUTIES[Duty.READ]) == set(DUTIES[Duty.WORK]) == set(DUTIES[Duty.OPERATE])


@pytest.mark.parametrize(
    ("role", "quoted"),
    [
        ("app", '"app"'),
        ('a"; DROP TABLE jobs; --', '"a""; DROP TABLE jobs; --"'),
        ("per%cent %s %(x)s", '"per%cent %s %(x)s"'),
        ("back\\slash", '"back\\slash"'),
        ("public", '"public"'),
        ("a=b", '"a=b"'),
        ("ünïcode", '"ünïcode"'),
        ("r" * 63, f'"{"r" * 63}"'),
    ],
)
def test_any_name_of_a_role_is_quoted(role: str, quoted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert {grant.sql.rpartition(" TO ")[2] for grant in grants([(role, "read")])} == {f"{quoted};"}
    assert run(["grants", "--role", f"{role}=read"]) == 0
    assert f"TO {quoted};" in capsys.readouterr().out


def test_the_schema_may_be_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["grants", "--role", "app=enqueue", "--schema", 'My "own"']) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'GRANT USAGE ON SCHEMA "My ""own""" TO "app";'
    assert all('"My ""own"""' in line and "jobq" not in line for line in lines)


def test_as_json_a_grant_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["grants", "--role", "ui=read", "--json"]) == 0

    objects: list[Any] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {tuple(each) for each in objects} == {("role", "duty", "privileges", "on", "sql")}
    assert objects[0]["sql"] == 'GRANT USAGE ON SCHEMA "jobq" TO "ui";'


def test_what_two_duties_of_a_role_have_in_common_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["grants", "--role", "app=enqueue", "--role", "app=read"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--role", "app"], "ROLE=DUTY, such as app=enqueue, not 'app'"),
        (["--role", "=work"], "ROLE=DUTY, such as app=enqueue, not '=work'"),
        (["--role", "app=admin"], "no duty 'admin': there are enqueue, work, operate, read"),
        (["--role", "a\x1b[31m=work"], "role: 1 to 63 bytes of printable characters, got 'a\\x1b[31m'"),
        (["--role", "a\x00=work"], "role: 1 to 63 bytes of printable characters, got 'a\\x00'"),
        (["--role", "a\nb=work"], "role: 1 to 63 bytes of printable characters, got 'a\\nb'"),
        (["--role", "é" * 32 + "=work"], "role: 1 to 63 bytes of printable characters"),
        (["--role", "app=work", "--schema", ""], "schema: 1 to 63 bytes of printable characters, got ''"),
        ([], "Missing option '--role'"),
    ],
)
def test_what_is_no_role_and_no_duty_is_refused_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["grants", *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert err.strip().isprintable()


def test_an_error_names_the_duties_there_are() -> None:
    with pytest.raises(OptionError, match="enqueue, work, operate, read"):
        grants([("app", "WORK")])
