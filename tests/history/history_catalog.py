"""What is in a database, as a test asks it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

WAITING = "INSERT INTO jobq.jobs (kind) VALUES ('waiting')"
ENDED = """
INSERT INTO jobq.finished_jobs (id, queue, kind, args, priority, run_at, attempt, failures, created_at, meta, errors,
                                state, expires_at)
VALUES (99, 'default', 'ended', '{}', 1, now(), 1, 0, now(), '{}', '[]', 'done', now())
"""
HERE = "'jobq'::regnamespace"
EVERYTHING = f"""
SELECT 'table', relname, relkind::text, array_to_string(reloptions, ' ')
FROM pg_class WHERE relnamespace = {HERE}
UNION ALL SELECT 'column', a.attrelid::regclass::text || '.' || attname, format_type(atttypid, atttypmod)
                 || CASE WHEN attnotnull THEN ' not null ' ELSE ' ' END || attidentity::text,
                 pg_get_expr(adbin, adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = {HERE} AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v')
UNION ALL SELECT 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = {HERE}
UNION ALL SELECT 'index', indexname, tablename, indexdef FROM pg_indexes WHERE schemaname = 'jobq'
UNION ALL SELECT 'view', viewname, definition, '' FROM pg_views WHERE schemaname = 'jobq'
UNION ALL SELECT 'function', oid::regprocedure::text, prosrc, array_to_string(proconfig, ' ')
FROM pg_proc WHERE pronamespace = {HERE}
UNION ALL SELECT 'revision', version_num, '', '' FROM jobq.schema_version
ORDER BY 1, 2, 3, 4
"""  # noqa: S608


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement; each is a transaction."""
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    rows: list[tuple[Any, ...]] = []
    with engine.connect() as connection:
        for statement in statements:
            result = connection.exec_driver_sql(statement)
            rows = [tuple(row) for row in result] if result.returns_rows else []
    return rows


def everything(url: str) -> list[tuple[Any, ...]]:
    """jobq's schema as the catalog has it, with the revision that it is at."""
    return run(url, EVERYTHING)


def tables(url: str) -> list[str]:
    query = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', %s)"
    return [name for (name,) in run(url, query.replace("%s", "'information_schema'") + " ORDER BY 1")]


def schemas(url: str) -> set[str]:
    names = {name for (name,) in run(url, "SELECT nspname FROM pg_namespace")}
    return {name for name in names if not name.startswith("pg_")} - {"information_schema", "public"}
