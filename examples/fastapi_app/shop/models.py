from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

SQLModel.metadata.naming_convention = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class Product(SQLModel, table=True):
    __tablename__ = "products"

    name: str = Field(primary_key=True)
    stock: int


class NewOrder(SQLModel):
    """What a customer sends."""

    email: str = Field(min_length=3, max_length=254)
    product: str
    quantity: int = Field(default=1, ge=1)


class Order(SQLModel, table=True):
    __tablename__ = "orders"

    id: int | None = Field(default=None, primary_key=True)
    email: str
    product: str = Field(foreign_key="products.name", index=True)
    quantity: int


class Receipt(SQLModel, table=True):
    """That the customer has been told; one for each order."""

    __tablename__ = "receipts"

    order_id: int = Field(primary_key=True, foreign_key="orders.id")
    sent_at: datetime = Field(sa_column=sa.Column(sa.DateTime(timezone=True), nullable=False))


class OrderShown(NewOrder):
    """What the shop answers; `receipt_sent_at` is None until a worker has sent it."""

    id: int
    receipt_sent_at: datetime | None = None
