"""Database URLs as they are found in the wild."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy as sa

from jobq import urls
from jobq.errors import JobqError, OptionError


@pytest.mark.parametrize(
    "scheme",
    [
        "postgres",
        "postgresql",
        "postgres+asyncpg",
        "postgresql+asyncpg",
        "postgresql+psycopg",
        "postgresql+psycopg2",
        "postgresql+psycopg2cffi",
        "postgresql+psycopg_async",
        "postgresql+pg8000",
    ],
)
def test_every_driver_becomes_psycopg(scheme: str) -> None:
    url = urls.normalize(f"{scheme}://shop:secret@db.example:5433/orders")

    assert url.render_as_string(hide_password=False) == "postgresql+psycopg://shop:secret@db.example:5433/orders"


@pytest.mark.parametrize(
    ("written", "password"),
    [("p%40ss", "p@ss"), ("100%25", "100%"), ("a%2Fb%3Fc%23d%3Ae", "a/b?c#d:e"), ("p%%s", "p%%s"), ("%C3%A4", "ä")],
)
def test_f61_a_password_with_percent_signs_is_kept(written: str, password: str) -> None:
    url = urls.normalize(f"postgresql://u:{written}@h/db")

    assert url.password == password
    assert urls.normalize(url.render_as_string(hide_password=False)) == url


@pytest.mark.parametrize(
    "query",
    [
        {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem"},
        {"host": "/var/run/postgresql", "port": "5433"},
        {"options": "-c search_path=shop", "application_name": "shop@web"},
        {"host": ("a:5432", "b:5433"), "target_session_attrs": "read-write"},
    ],
    ids=lambda query: "-".join(query),
)
def test_options_of_libpq_are_kept(query: dict[str, str | tuple[str, ...]], caplog: pytest.LogCaptureFixture) -> None:
    given = sa.URL.create("postgresql+asyncpg", "u", "secret", database="db", query=query)

    assert dict(urls.normalize(given.render_as_string(hide_password=False)).query) == query
    assert caplog.text == ""


def test_options_that_only_other_drivers_know_are_dropped_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "jobq"):
        url = urls.normalize("postgresql+asyncpg://u:secret@h/db?prepared_statement_cache_size=0&pool=5&sslmode=prefer")

    assert dict(url.query) == {"sslmode": "prefer"}
    assert [record.getMessage() for record in caplog.records] == [
        "ignored options of the database URL that psycopg does not know: pool, prepared_statement_cache_size"
    ]


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("ssl=require", "require"),
        ("ssl=verify-full", "verify-full"),
        ("ssl=true", "require"),
        ("sslmode=no-verify", "require"),
        ("ssl=false", "disable"),
        ("ssl=require&sslmode=verify-ca", "verify-ca"),
    ],
)
def test_encryption_asked_of_another_driver_is_not_lost(written: str, mode: str) -> None:
    assert urls.normalize(f"postgresql+asyncpg://u@h/db?{written}").query["sslmode"] == mode


def test_the_socket_that_pg8000_names_is_the_one_used() -> None:
    url = urls.normalize("postgresql+pg8000://u:secret@/db?unix_sock=/cloudsql/shop:eu:orders/.s.PGSQL.5433")

    assert dict(url.query) == {"host": "/cloudsql/shop:eu:orders", "port": "5433"}


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:sekret@w0rd@127.0.0.1/db",
        "postgresql://u:w0rd@sekret@127.0.0.1:5432/db",
        "postgresql://u:w0rd@sek:ret@127.0.0.1/db",
        "postgresql://u:w@sekret/w0rd@127.0.0.1/db",
        "postgresql://u:w0rd@sekret?x@127.0.0.1/db",
        "postgresql://u:sekret@h:port/db",
        "postgresql://u:sekret@h:70000/db",
        "postgresql://u:sekret@h:5432,i:5433/db",
        "postgresql:/u:sekret@h/db",
        "u:sekret@h/db",
        "host=h password=sekret",
        "mysql://u:sekret@h/db",
        "sqlite:///sekret.db",
        "u:sekret@h://",
        "",
    ],
)
def test_f69_a_malformed_url_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(OptionError) as refused:
        urls.normalize(text)

    assert isinstance(refused.value, JobqError)
    assert not {"sekret", "w0rd"} & set(str(refused.value).replace("@", " ").split())
    assert "sek" not in str(refused.value)
    assert "w0rd" not in str(refused.value)
    assert refused.value.__cause__ is None  # the parser's own error quotes parts of it
    assert "sek" not in urls.safe(text)


def test_f69_the_text_for_messages_hides_every_secret() -> None:
    text = "postgresql+asyncpg://u:sekret@h:5433/db?sslpassword=sekret&sslmode=require"

    assert urls.safe(text) == "postgresql+psycopg://u:***@h:5433/db?sslmode=require"
    assert urls.safe(sa.make_url("postgresql://u@h/db?password=sekret")) == "postgresql://u@h/db"


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ({"JOBQ_DATABASE_URL": "postgres://jobq/db", "DATABASE_URL": "postgres://app/db"}, "jobq"),
        ({"JOBQ_DATABASE_URL": " ", "DATABASE_URL": "postgres://app/db\n"}, "app"),
    ],
)
def test_the_environment_names_the_database(environment: dict[str, str], host: str) -> None:
    url = urls.from_environment(environment)

    assert url is not None
    assert (url.host, url.database) == (host, "db")


def test_an_environment_without_a_database_gives_none() -> None:
    assert urls.from_environment({"DATABASE_URL": ""}) is None


def test_a_malformed_url_in_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(OptionError, match=r"^DATABASE_URL: the database URL is malformed"):
        urls.from_environment({"DATABASE_URL": "postgres://u:sekret@h:x/db"})


def test_options_of_the_url_go_before_the_limits_that_are_set_for_each_connection() -> None:
    url = urls.normalize("postgresql://u@h/db?tcp_user_timeout=5000&application_name=shop")

    given = urls.patient(url, "jobq")

    assert given == {**urls.KEEPALIVE, "tcp_user_timeout": "5000", "application_name": "shop"}
