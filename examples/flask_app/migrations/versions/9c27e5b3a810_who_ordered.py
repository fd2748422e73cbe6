"""who ordered"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9c27e5b3a810"
down_revision = "4a1f0c6d2b7e"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("orders", sa.Column("email", sa.Text, nullable=False, server_default=""))
    op.alter_column("orders", "email", server_default=None)


def downgrade() -> None:
    op.drop_column("orders", "email")
