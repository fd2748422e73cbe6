"""receipts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "e6b8d0f41c95"
down_revision = "e655a9507746"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "receipts",
        sa.Column("order_id", sa.Integer, sa.ForeignKey("orders.id"), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("sent_at", sa.TIMESTAMP(timezone=True), nullable=False, server_default=sa.func.now()),
    )


def downgrade() -> None:
    op.drop_table("receipts")
