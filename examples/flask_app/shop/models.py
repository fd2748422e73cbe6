"""What the shop keeps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column, relationship

from shop.database import db


class Item(db.Model):  # type: ignore[name-defined,misc]
    __tablename__ = "items"
    __table_args__ = (sa.CheckConstraint("stock >= 0", name="items_stock_check"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.Text, unique=True)
    stock: Mapped[int]


class Order(db.Model):  # type: ignore[name-defined,misc]
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(sa.ForeignKey("items.id"), index=True)
    quantity: Mapped[int]
    email: Mapped[str] = mapped_column(sa.Text)

    item: Mapped[Item] = relationship()
    receipt: Mapped[Receipt | None] = relationship(back_populates="order")


class Receipt(db.Model):  # type: ignore[name-defined,misc]
    """One for each order, which its key sees to."""

    __tablename__ = "receipts"

    order_id: Mapped[int] = mapped_column(sa.ForeignKey("orders.id"), primary_key=True)
    text: Mapped[str] = mapped_column(sa.Text)
    sent_at: Mapped[datetime] = mapped_column(sa.TIMESTAMP(timezone=True), server_default=sa.func.now())

    order: Mapped[Order] = relationship(back_populates="receipt")
