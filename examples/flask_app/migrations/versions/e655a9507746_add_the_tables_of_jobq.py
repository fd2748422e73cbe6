"""add the tables of jobq"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
import jobq_migrations

revision = 'e655a9507746'
down_revision = '9c27e5b3a810'
branch_labels = None
depends_on = None


def upgrade() -> None:
    jobq_migrations.upgrade(to="0001")


def downgrade() -> None:
    jobq_migrations.downgrade(to="base", since="0001")
