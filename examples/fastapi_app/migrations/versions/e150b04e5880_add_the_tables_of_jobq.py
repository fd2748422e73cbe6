"""add the tables of jobq"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
import jobq_migrations

revision = 'e150b04e5880'
down_revision = '8d41b7e6f09c'
branch_labels = None
depends_on = None


def upgrade() -> None:
    jobq_migrations.upgrade(to="0001")


def downgrade() -> None:
    jobq_migrations.downgrade(to="base", since="0001")
