"""products and orders"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3a6f0c1d52b7"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    products = op.create_table(
        "products",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("stock", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_products"),
    )
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("email", sa.String, nullable=False),
        sa.Column("product", sa.String, nullable=False),
        sa.Column("quantity", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orders"),
        sa.ForeignKeyConstraint(["product"], ["products.name"], name="fk_orders_product"),
    )
    op.create_index("ix_orders_product", "orders", ["product"])
    op.bulk_insert(products, [{"name": "tea", "stock": 100}, {"name": "honey", "stock": 3}])


def downgrade() -> None:
    op.drop_table("orders")
    op.drop_table("products")
