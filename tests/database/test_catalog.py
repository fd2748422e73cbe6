"""What `alembic check` does not see, read from the catalog of a migrated database."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa

from jobq import tables


def catalog(connection: sa.Connection, query: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_the_storage_options_are_those_of_the_tables(connection: sa.Connection) -> None:
    query = "SELECT relname, reloptions FROM pg_class WHERE relnamespace = 'jobq'::regnamespace AND relkind = 'r'"
    stored = {name: dict(option.split("=") for option in options or ()) for name, options in catalog(connection, query)}

    assert {name: options for name, options in stored.items() if options} == tables.STORAGE


def test_the_indexes_are_these_and_no_others(connection: sa.Connection) -> None:
    query = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'jobq'"
    found = {name: re.sub(r" ON jobq\.\w+ USING", "", text) for name, text in catalog(connection, query)}
    own = {name: text for name, text in found.items() if not name.endswith(("_pkey", "_pkc"))}

    assert own == {
        "jobs_lane": "CREATE INDEX jobs_lane btree (queue, priority, run_at, ((id + 0)))",
        "jobs_unique": "CREATE UNIQUE INDEX jobs_unique btree (unique_key) WHERE (unique_key IS NOT NULL)",
        "finished_jobs_expires": "CREATE INDEX finished_jobs_expires btree (expires_at)",
        "finished_jobs_finished": "CREATE INDEX finished_jobs_finished brin (finished_at) WITH (autosummarize='on')",
        "finished_jobs_dead": "CREATE INDEX finished_jobs_dead btree (queue, finished_at) WHERE (state = 'dead'::text)",
        "finished_jobs_recent": "CREATE INDEX finished_jobs_recent btree"
        " (jsonb_hash_extended(args, hashtextextended(kind, (0)::bigint)), finished_at)",
    }
    assert len(found) - len(own) == len(tables.metadata.tables) + 1  # a primary key each, and the version table's


@pytest.mark.parametrize("column", ["worker_id", "attempt", "attempted_at", "failures", "errors", "meta"])
def test_no_index_of_jobs_names_what_a_claim_writes(connection: sa.Connection, column: str) -> None:
    query = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'jobq' AND tablename = 'jobs'"
    definitions = [text for (text,) in catalog(connection, query)]

    assert len(definitions) == 3
    assert not [text for text in definitions if re.search(rf"\b{column}\b", text)]


def test_a_claim_is_a_hot_update(engine: sa.Engine) -> None:
    insert = "INSERT INTO jobq.jobs (kind) SELECT 'k' FROM generate_series(1, 500)"
    claim = "UPDATE jobq.jobs SET worker_id = 7, attempt = attempt + 1, attempted_at = now()"
    counters = "SELECT pg_stat_get_xact_tuples_updated(oid), pg_stat_get_xact_tuples_hot_updated(oid)"
    with engine.begin() as connection:
        connection.exec_driver_sql(insert)
    with engine.begin() as connection:
        connection.exec_driver_sql(claim)
        [(updated, hot)] = catalog(connection, f"{counters} FROM pg_class WHERE oid = 'jobq.jobs'::regclass")

    assert updated == 500
    assert hot >= 400  # the rest found no room on their page, at these small rows


def test_the_checks_are_those_of_the_tables(connection: sa.Connection) -> None:
    """Compared as PostgreSQL prints them, so both sides are made by the server."""
    query = """
        SELECT relname || '.' || conname, pg_get_constraintdef(c.oid)
        FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid
        WHERE connamespace = '{}'::regnamespace AND contype = 'c'
    """
    migrated = dict(catalog(connection, query.format("jobq")))
    create_as_declared(connection)
    declared = dict(catalog(connection, query.format("declared")))

    assert len(migrated) == 12
    assert migrated == declared


def test_the_function_acts_for_its_caller_and_looks_nowhere_else(connection: sa.Connection) -> None:
    query = """
        SELECT proname, pg_get_function_identity_arguments(oid), prosecdef, provolatile, proconfig
        FROM pg_proc WHERE pronamespace = 'jobq'::regnamespace
    """
    arguments = "kind text, args jsonb, queue text, run_at timestamp with time zone, priority integer, unique_key text"

    assert catalog(connection, query) == [("enqueue", arguments, False, "v", ["search_path=pg_catalog, pg_temp"])]


def test_the_view_is_that_of_the_tables(connection: sa.Connection) -> None:
    query = "SELECT pg_get_viewdef('{}.all_jobs'::regclass)"
    [(migrated,)] = catalog(connection, query.format("jobq"))
    create_as_declared(connection)
    [(declared,)] = catalog(connection, query.format("declared"))

    assert migrated == declared.replace("declared.", "jobq.")


def test_the_view_has_the_columns_and_types_that_the_library_reads(connection: sa.Connection) -> None:
    dialect = connection.dialect
    reflected = sa.inspect(connection).get_columns("all_jobs", "jobq")
    found = {column["name"]: column["type"].compile(dialect) for column in reflected}

    assert found == {column.name: column.type.compile(dialect) for column in tables.all_jobs.c}


def test_the_view_shows_every_job_once_in_its_state(connection: sa.Connection) -> None:
    waiting, running = connection.scalars(
        sa.insert(tables.jobs).returning(tables.jobs.c.id, sort_by_parameter_order=True),
        [{"kind": "k", "worker_id": None}, {"kind": "k", "worker_id": 7}],
    )

    shown = connection.execute(sa.select(tables.all_jobs.c.id, tables.all_jobs.c.state))

    assert sorted(tuple(row) for row in shown) == sorted([(waiting, "pending"), (running, "running")])


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue": ""},
        {"queue": "a|b"},
        {"kind": "k" * 64},
        {"kind": "k\n"},
        {"priority": 4},
        {"priority": -1},
        {"run_at": sa.text("'-infinity'")},
        {"run_at": sa.text("'infinity'")},
        {"run_at": sa.text("'0044-03-15 BC'")},
        {"args": sa.text("'[]'")},
        {"unique_key": ""},
        {"unique_key": "ä" * 101},
        {"max_attempts": 0},
        {"failures": -1},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_the_database_refuses_rows_outside_the_rules(connection: sa.Connection, wrong: dict[str, object]) -> None:
    with pytest.raises(sa.exc.IntegrityError, match="violates check constraint"):
        connection.execute(sa.insert(tables.jobs).values({"kind": "k", **wrong}))


def create_as_declared(connection: sa.Connection) -> None:
    """The tables and the view as jobq.tables has them, in a schema of their own, in the caller's transaction."""
    connection.exec_driver_sql("CREATE SCHEMA declared")
    metadata = sa.MetaData(schema="declared")
    for table in tables.metadata.tables.values():
        table.to_metadata(metadata, schema="declared")
    metadata.create_all(connection)
    compiled = tables.all_jobs_select().compile(
        connection.engine, compile_kwargs={"literal_binds": True}, schema_translate_map={"jobq": "declared"},
        render_schema_translate=True,
    )  # fmt: skip
    connection.exec_driver_sql(f"CREATE VIEW declared.all_jobs AS {compiled}")
