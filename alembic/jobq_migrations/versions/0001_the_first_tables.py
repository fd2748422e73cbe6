"""The first tables, the view all_jobs and the function enqueue.

It spells out its own columns and imports nothing of jobq, because it must mean the same when jobq has moved on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIMESTAMP = sa.TIMESTAMP(timezone=True)
RUN_AT_RULE = "run_at >= '1970-01-01 00:00:00+00' AND run_at < '9000-01-01 00:00:00+00'"
NAME_RULE = "^[A-Za-z0-9_.:/-]{1,63}$"
NAME_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-"
STORAGE_OF_JOBS = """ALTER TABLE jobq.jobs SET (
    fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000
)"""  # SQLAlchemy's postgresql_with for tables is younger than the oldest version that jobq takes
TABLES = ("jobs", "finished_jobs", "workers", "slots", "queues", "kinds", "schedules", "leader", "sums")


def upgrade() -> None:
    create_jobs()
    create_finished_jobs()
    create_all_jobs()
    create_workers()
    create_slots()
    create_queues()
    create_kinds()
    create_schedules()
    create_leader()
    create_sums()
    create_enqueue()


def downgrade() -> None:
    op.execute(in_schema("DROP FUNCTION jobq.enqueue(text, jsonb, text, timestamptz, int, text)"))
    op.execute(in_schema("DROP VIEW jobq.all_jobs"))
    for table in reversed(TABLES):
        op.drop_table(table, schema=schema())


def schema() -> str:
    """Where the tables go: `jobq`, unless the environment that runs this says another one."""
    return str(op.get_context().opts.get("jobq_schema", "jobq"))


def is_name(column: str) -> str:
    """NAME_RULE, for what is checked at each UPDATE."""
    return f"octet_length({column}) BETWEEN 1 AND 63 AND btrim(textsend({column}), '{NAME_LETTERS}'::bytea) = ''::bytea"


def in_schema(sql: str) -> sa.TextClause:
    quoted = op.get_context().dialect.identifier_preparer.quote_schema(schema())
    return sa.text(sql.replace("jobq.", f"{quoted}."))


def create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger, sa.Identity(always=False), primary_key=True),
        sa.Column("queue", sa.Text, nullable=False, server_default=sa.text("'default'")),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("args", JSONB, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("priority", sa.SmallInteger, nullable=False, server_default=sa.text("1")),
        sa.Column("run_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("attempt", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("failures", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("max_attempts", sa.Integer),
        sa.Column("unique_key", sa.Text),
        sa.Column("worker_id", sa.BigInteger),
        sa.Column("attempted_at", TIMESTAMP),
        sa.Column("created_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("callsite", sa.Text),
        sa.Column("meta", JSONB, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("errors", JSONB, nullable=False, server_default=sa.text("'[]'")),
        *rules_for_jobs(),
        schema=schema(),
    )
    op.execute(in_schema(STORAGE_OF_JOBS))
    create_index("jobs_lane", "jobs", ["queue", "priority", "run_at", sa.text("(id + 0)")])
    keyed = sa.text("unique_key IS NOT NULL")
    create_index("jobs_unique", "jobs", ["unique_key"], unique=True, postgresql_where=keyed)


def rules_for_jobs() -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(is_name("queue"), name="jobs_queue_check"),
        sa.CheckConstraint(is_name("kind"), name="jobs_kind_check"),
        sa.CheckConstraint("priority BETWEEN 0 AND 3", name="jobs_priority_check"),
        sa.CheckConstraint("octet_length(unique_key) BETWEEN 1 AND 200", name="jobs_unique_key_check"),
        sa.CheckConstraint("jsonb_typeof(args) = 'object'", name="jobs_args_check"),
        sa.CheckConstraint(RUN_AT_RULE, name="jobs_run_at_check"),
        sa.CheckConstraint("attempt >= 0 AND failures >= 0 AND max_attempts >= 1", name="jobs_attempts_check"),
    ]


def create_index(name: str, table: str, columns: list[Any], **options: Any) -> None:
    op.create_index(name, table, columns, schema=schema(), **options)


def create_finished_jobs() -> None:
    op.create_table(
        "finished_jobs",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("args", JSONB, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False),
        sa.Column("run_at", TIMESTAMP, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer),
        sa.Column("unique_key", sa.Text),
        sa.Column("worker_id", sa.BigInteger),
        sa.Column("attempted_at", TIMESTAMP),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.Column("callsite", sa.Text),
        sa.Column("meta", JSONB, nullable=False),
        sa.Column("errors", JSONB, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("finished_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("expires_at", TIMESTAMP, nullable=False),
        sa.Column("result", JSONB),
        sa.CheckConstraint("state IN ('done', 'dead', 'cancelled')", name="finished_jobs_state_check"),
        schema=schema(),
    )
    create_index("finished_jobs_expires", "finished_jobs", ["expires_at"])
    by_range = {"postgresql_using": "brin", "postgresql_with": {"autosummarize": "on"}}
    create_index("finished_jobs_finished", "finished_jobs", ["finished_at"], **by_range)
    digest = sa.text("jsonb_hash_extended(args, hashtextextended(kind, 0))")
    create_index("finished_jobs_recent", "finished_jobs", [digest, "finished_at"])
    dead = sa.text("state = 'dead'")
    create_index("finished_jobs_dead", "finished_jobs", ["queue", "finished_at"], postgresql_where=dead)


ALL_JOBS = """
CREATE VIEW jobq.all_jobs AS
SELECT id, queue, kind, args, priority, run_at, attempt, failures, max_attempts, unique_key, worker_id, attempted_at,
       created_at, callsite, meta, errors,
       CAST(CASE WHEN worker_id IS NULL THEN 'pending' ELSE 'running' END AS text) AS state,
       CAST(NULL AS text) AS outcome,
       CAST(NULL AS timestamptz) AS finished_at,
       CAST(NULL AS timestamptz) AS expires_at,
       CAST(NULL AS jsonb) AS result
FROM jobq.jobs
UNION ALL
SELECT id, queue, kind, args, priority, run_at, attempt, failures, max_attempts, unique_key, worker_id, attempted_at,
       created_at, callsite, meta, errors, state, outcome, finished_at, expires_at, result
FROM jobq.finished_jobs
"""


def create_all_jobs() -> None:
    op.execute(in_schema(ALL_JOBS.strip()))


def create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hostname", sa.Text),
        sa.Column("pid", sa.Integer),
        sa.Column("version", sa.Text),
        sa.Column("queues", ARRAY(sa.Text)),
        sa.Column("kinds", ARRAY(sa.Text)),
        sa.Column("schedules", ARRAY(sa.Text)),
        sa.Column("concurrency", sa.Integer),
        sa.Column("started_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("lease", INTERVAL, nullable=False),
        sa.Column("lease_until", TIMESTAMP, nullable=False),
        sa.Column("left_behind", sa.Integer, nullable=False, server_default=sa.text("0")),
        schema=schema(),
    )
    op.execute(in_schema("ALTER TABLE jobq.workers SET (fillfactor = 10)"))


def create_slots() -> None:
    op.create_table(
        "slots",
        sa.Column("queue", sa.Text, primary_key=True),
        sa.Column("n", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("worker_id", sa.BigInteger),
        sa.Column("job_id", sa.BigInteger),
        sa.Column("attempt", sa.Integer),
        sa.Column("ready_at", TIMESTAMP, nullable=False, server_default=sa.text("'-infinity'")),
        schema=schema(),
    )
    op.execute(in_schema("ALTER TABLE jobq.slots SET (fillfactor = 10)"))


def create_queues() -> None:
    op.create_table(
        "queues",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("weight", sa.Integer),
        sa.Column("concurrency", sa.SmallInteger),
        sa.Column("fifo", sa.Boolean),
        sa.Column("paused_at", TIMESTAMP),
        sa.Column("paused_until", TIMESTAMP),
        sa.Column("pause_reason", sa.Text),
        sa.CheckConstraint(f"name ~ '{NAME_RULE}'", name="queues_name_check"),
        sa.CheckConstraint("weight >= 1 AND concurrency >= 1", name="queues_limits_check"),
        schema=schema(),
    )


def create_kinds() -> None:
    op.create_table(
        "kinds",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("timeout", INTERVAL),
        sa.Column("keep", INTERVAL),
        sa.Column("on_interrupt", sa.Text, nullable=False, server_default=sa.text("'retry'")),
        sa.Column("priority", sa.SmallInteger, nullable=False, server_default=sa.text("1")),
        sa.Column("unique_names", sa.Text),
        sa.Column("secrets", sa.Text),
        sa.Column("updated_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.CheckConstraint("on_interrupt IN ('retry', 'fail')", name="kinds_on_interrupt_check"),
        schema=schema(),
    )


def create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("form", sa.Text, nullable=False),
        sa.Column("expression", sa.Text, nullable=False),
        sa.Column("timezone", sa.Text, nullable=False, server_default=sa.text("'UTC'")),
        sa.Column("catch_up", sa.Text, nullable=False, server_default=sa.text("'once'")),
        sa.Column("job", JSONB, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("first_seen_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("last_tick", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
        sa.Column("last_fate", sa.Text),
        sa.Column("enqueued", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("skipped", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("missed", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.CheckConstraint("last_fate IN ('enqueued', 'skipped', 'missed')", name="schedules_last_fate_check"),
        schema=schema(),
    )


def create_leader() -> None:
    op.create_table(
        "leader",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("worker_id", sa.BigInteger),
        sa.Column("term", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("lease_until", TIMESTAMP, nullable=False, server_default=sa.text("'-infinity'")),
        sa.Column("summed_until", TIMESTAMP),
        schema=schema(),
    )


def create_sums() -> None:
    op.create_table(
        "sums",
        sa.Column("minutes", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("starts_at", TIMESTAMP, primary_key=True),
        sa.Column("queue", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, primary_key=True),
        sa.Column("word", sa.Text, primary_key=True),
        sa.Column("finished", sa.Integer, nullable=False),
        sa.Column("longest", INTERVAL),
        sa.Column("buckets", ARRAY(sa.SmallInteger), nullable=False),
        sa.Column("counts", ARRAY(sa.Integer), nullable=False),
        schema=schema(),
    )


def create_enqueue() -> None:
    """Its text has a file of its own; notifications take the channel that is named as the schema."""
    text = Path(__file__).with_name("0001_enqueue.sql").read_text().strip()
    channel = "channel CONSTANT text = '{}'"
    named = text.replace(channel.format("jobq"), channel.format(schema().replace("'", "''")))
    op.execute(in_schema(named.replace(":", r"\:")))  # else SQLAlchemy takes a word behind a colon for a bind
