"""receipts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8d41b7e6f09c"
down_revision = "3a6f0c1d52b7"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "receipts",
        sa.Column("order_id", sa.Integer, nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("order_id", name="pk_receipts"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.id"], name="fk_receipts_order_id"),
    )


def downgrade() -> None:
    op.drop_table("receipts")
