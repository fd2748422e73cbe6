# pyright: strict
"""Right: an application's own Alembic history, with jobq's tables in it. Read by test_typing.py, never executed."""

from __future__ import annotations

import functools

import sqlalchemy as sa
from alembic import context

import jobq_migrations


def upgrade() -> None:
    jobq_migrations.upgrade(to="0001")


def downgrade() -> None:
    jobq_migrations.downgrade(to="base", schema="shop_jobs")


def env(connection: sa.Connection) -> None:
    context.configure(connection, include_schemas=True, include_name=jobq_migrations.include_name)
    elsewhere = functools.partial(jobq_migrations.include_name, schema="shop_jobs")
    context.configure(connection, include_schemas=True, include_name=elsewhere)
