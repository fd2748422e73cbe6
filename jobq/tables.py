"""The tables of jobq as SQLAlchemy Core, all in schema `jobq`; migrations create them (DESIGN.md, Storage).

Another schema is chosen with SQLAlchemy's own `schema_translate_map={"jobq": "other"}`.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, JSONB

SCHEMA = "jobq"
TIMESTAMP = sa.TIMESTAMP(timezone=True)
NAME_RULE = "^[A-Za-z0-9_.:/-]{1,63}$"  # queues and kinds: they travel in notifications and labels
NAME_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-"
# What Python and every driver can read, with room on both sides for a cursor and a delay.
RUN_AT_RULE = "run_at >= '1970-01-01 00:00:00+00' AND run_at < '9000-01-01 00:00:00+00'"

metadata = sa.MetaData(schema=SCHEMA)


def _job_columns(*, live: bool) -> list[sa.Column[Any]]:
    """The columns that jobs and finished_jobs share; only the live table needs defaults."""

    def default(text: str) -> dict[str, Any]:
        return {"server_default": sa.text(text)} if live else {}

    return [
        sa.Column("id", sa.BigInteger, *([sa.Identity(always=False)] if live else []), primary_key=True),
        sa.Column("queue", sa.Text, nullable=False, **default("'default'")),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("args", JSONB, nullable=False, **default("'{}'")),
        sa.Column("priority", sa.SmallInteger, nullable=False, **default("1")),
        sa.Column("run_at", TIMESTAMP, nullable=False, **default("now()")),
        sa.Column("attempt", sa.Integer, nullable=False, **default("0")),
        sa.Column("failures", sa.Integer, nullable=False, **default("0")),
        sa.Column("max_attempts", sa.Integer),
        sa.Column("unique_key", sa.Text),
        sa.Column("worker_id", sa.BigInteger),
        sa.Column("attempted_at", TIMESTAMP),
        sa.Column("created_at", TIMESTAMP, nullable=False, **default("now()")),
        sa.Column("callsite", sa.Text),
        sa.Column("meta", JSONB, nullable=False, **default("'{}'")),
        sa.Column("errors", JSONB, nullable=False, **default("'[]'")),
    ]


def _is_name(column: str) -> str:
    """NAME_RULE by bytes: checks are made at each UPDATE, where characters cost a fifth of a claim, regular expressions
    a half. Letters outside ASCII begin with a byte outside it, in any encoding of a server or a client."""
    return f"octet_length({column}) BETWEEN 1 AND 63 AND btrim(textsend({column}), '{NAME_LETTERS}'::bytea) = ''::bytea"


# What is still to be done: due, scheduled, running. No index names a state, a worker or an attempt, so a claim is a
# HOT update; `id + 0` keeps the planner from answering `id = ANY(...)` through this index (DESIGN.md, Storage).
jobs = sa.Table(
    "jobs",
    metadata,
    *_job_columns(live=True),
    sa.CheckConstraint(_is_name("queue"), name="jobs_queue_check"),
    sa.CheckConstraint(_is_name("kind"), name="jobs_kind_check"),
    sa.CheckConstraint("priority BETWEEN 0 AND 3", name="jobs_priority_check"),
    sa.CheckConstraint("octet_length(unique_key) BETWEEN 1 AND 200", name="jobs_unique_key_check"),
    sa.CheckConstraint("jsonb_typeof(args) = 'object'", name="jobs_args_check"),
    sa.CheckConstraint(RUN_AT_RULE, name="jobs_run_at_check"),
    sa.CheckConstraint("attempt >= 0 AND failures >= 0 AND max_attempts >= 1", name="jobs_attempts_check"),
)
sa.Index("jobs_lane", jobs.c.queue, jobs.c.priority, jobs.c.run_at, sa.text("(id + 0)"))
sa.Index("jobs_unique", jobs.c.unique_key, unique=True, postgresql_where=sa.text("unique_key IS NOT NULL"))

# What has ended: done, dead, cancelled. Moved here in the statement that ends the job, deleted by `expires_at`.
finished_jobs = sa.Table(
    "finished_jobs",
    metadata,
    *_job_columns(live=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text),
    sa.Column("finished_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
    sa.Column("expires_at", TIMESTAMP, nullable=False),
    sa.Column("result", JSONB(none_as_null=True)),
    sa.CheckConstraint("state IN ('done', 'dead', 'cancelled')", name="finished_jobs_state_check"),
)
finished_jobs.c.id.autoincrement = False
sa.Index("finished_jobs_expires", finished_jobs.c.expires_at)
# autosummarize: of the newest pages, which are asked for most, only a vacuum would make entries else.
sa.Index(
    "finished_jobs_finished", finished_jobs.c.finished_at,
    postgresql_using="brin", postgresql_with={"autosummarize": "on"},
)  # fmt: skip
sa.Index(
    "finished_jobs_dead", finished_jobs.c.queue, finished_jobs.c.finished_at,
    postgresql_where=sa.text("state = 'dead'"),
)  # fmt: skip
# 64 bits of kind and args: small entries, since they come at random places. Hash partitions rest on these functions, so
# what they give stays the same from one version of PostgreSQL to the next.
sa.Index(
    "finished_jobs_recent", sa.text("jsonb_hash_extended(args, hashtextextended(kind, 0))"),
    finished_jobs.c.finished_at,
)  # fmt: skip

# The lease belongs to the worker process: a job runs if, and only if, its worker's row is here and knows it.
workers = sa.Table(
    "workers",
    metadata,
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
    # Handlers that could not be stopped and still run there, by the last beat.
    sa.Column("left_behind", sa.Integer, nullable=False, server_default=sa.text("0")),
)

# The right to run one job of a limited queue, and the attempt that has it: worker_id, job_id and attempt are its fence.
slots = sa.Table(
    "slots",
    metadata,
    sa.Column("queue", sa.Text, primary_key=True),
    sa.Column("n", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("worker_id", sa.BigInteger),
    sa.Column("job_id", sa.BigInteger),
    sa.Column("attempt", sa.Integer),
    sa.Column("ready_at", TIMESTAMP, nullable=False, server_default=sa.text("'-infinity'")),
)

# What every worker obeys, whatever its code says. NULL in weight or fifo: nobody has said anything of the weight, or of
# a limit, so that the next code that does is heard. A limit is one job in order (fifo), `concurrency` jobs, or none.
queues = sa.Table(
    "queues",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("weight", sa.Integer),
    sa.Column("concurrency", sa.SmallInteger),
    sa.Column("fifo", sa.Boolean),
    sa.Column("paused_at", TIMESTAMP),
    sa.Column("paused_until", TIMESTAMP),
    sa.Column("pause_reason", sa.Text),
    sa.CheckConstraint(f"name ~ '{NAME_RULE}'", name="queues_name_check"),
    sa.CheckConstraint("weight >= 1 AND concurrency >= 1", name="queues_limits_check"),
)

# What workers publish of their handlers, for producers in SQL, for rescue and for answers.
kinds = sa.Table(
    "kinds",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("max_attempts", sa.Integer, nullable=False),
    sa.Column("timeout", INTERVAL),
    sa.Column("keep", INTERVAL),
    sa.Column("on_interrupt", sa.Text, nullable=False, server_default=sa.text("'retry'")),
    sa.Column("priority", sa.SmallInteger, nullable=False, server_default=sa.text("1")),
    sa.Column("unique_names", sa.Text),  # which args derive a unique key: by commas, empty for all, NULL for no key
    sa.Column("secrets", sa.Text),  # which args are not to be shown: by commas, NULL for none
    sa.Column("updated_at", TIMESTAMP, nullable=False, server_default=sa.text("now()")),
    sa.CheckConstraint("on_interrupt IN ('retry', 'fail')", name="kinds_on_interrupt_check"),
)

# What code says of its schedules, how far each has got, and what became of its ticks. `last_tick` begins as the moment
# when the schedule was first seen; each later one has had exactly one fate.
schedules = sa.Table(
    "schedules",
    metadata,
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
)

# The lease of the one worker that maintains; a term number tells a deposed leader from the one in office.
leader = sa.Table(
    "leader",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("worker_id", sa.BigInteger),
    sa.Column("term", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("lease_until", TIMESTAMP, nullable=False, server_default=sa.text("'-infinity'")),
    sa.Column("summed_until", TIMESTAMP),
)

# What ended in one minute or hour, counted by the leader: history without reading finished_jobs. How long attempts took
# is counted in buckets that grow by the fourth root of 2, from 1 ms on: bucket buckets[i] has counts[i] of them.
sums = sa.Table(
    "sums",
    metadata,
    sa.Column("minutes", sa.SmallInteger, primary_key=True, autoincrement=False),  # 1 or 60
    sa.Column("starts_at", TIMESTAMP, primary_key=True),
    sa.Column("queue", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("state", sa.Text, primary_key=True),
    sa.Column("word", sa.Text, primary_key=True),
    sa.Column("finished", sa.Integer, nullable=False),
    sa.Column("longest", INTERVAL),
    sa.Column("buckets", ARRAY(sa.SmallInteger), nullable=False),
    sa.Column("counts", ARRAY(sa.Integer), nullable=False),
)

# Storage options, which SQLAlchemy cannot say and `alembic check` does not see; a test reads them from the catalog.
STORAGE = {
    "jobs": {
        "fillfactor": "50",
        "autovacuum_vacuum_scale_factor": "0.01",
        "autovacuum_vacuum_threshold": "5000",
        "autovacuum_vacuum_cost_delay": "0",
        "vacuum_truncate": "off",
    },
    "workers": {"fillfactor": "10"},
    "slots": {"fillfactor": "10"},
}

# The view is described apart from `metadata`, so that no autogenerate takes it for a table.
all_jobs = sa.Table(
    "all_jobs",
    sa.MetaData(schema=SCHEMA),
    *[sa.Column(column.name, column.type) for column in finished_jobs.c],
)


def all_jobs_select() -> sa.Executable:
    """What the view `all_jobs` shows: waiting and running jobs, then ended ones, in one shape."""
    state = sa.case((jobs.c.worker_id.is_(None), "pending"), else_="running")
    only_ended: dict[str, sa.ColumnElement[Any]] = {
        "state": sa.cast(state, sa.Text),
        "outcome": sa.cast(sa.null(), sa.Text),
        "finished_at": sa.cast(sa.null(), TIMESTAMP),
        "expires_at": sa.cast(sa.null(), TIMESTAMP),
        "result": sa.cast(sa.null(), JSONB),
    }
    columns = {**{column.name: column for column in jobs.c}, **only_ended}
    open_jobs = sa.select(*[columns[column.name].label(column.name) for column in finished_jobs.c])
    return sa.union_all(open_jobs, sa.select(*finished_jobs.c))
