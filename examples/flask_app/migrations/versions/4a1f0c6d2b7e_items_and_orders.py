"""items and orders"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4a1f0c6d2b7e"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    items = op.create_table(
        "items",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("stock", sa.Integer, nullable=False),
        sa.CheckConstraint("stock >= 0", name="items_stock_check"),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("items.id"), nullable=False, index=True),
        sa.Column("quantity", sa.Integer, nullable=False),
    )
    op.bulk_insert(items, [{"name": "tea", "stock": 10}, {"name": "coffee", "stock": 10}])


def downgrade() -> None:
    op.drop_table("orders")
    op.drop_table("items")
