"""`python -m shop before`, `catch-up`, `report`, `correct NAME EMAIL`."""

from __future__ import annotations

import sys

from sqlalchemy.orm import Session

from shop.database import sessions
from shop.models import Base, Order, fill
from shop.receipts import catch_up, correct_address, report


def main(command: str, *arguments: str) -> None:
    with sessions().begin() as session:
        if command == "before":
            Base.metadata.create_all(session.connection())
            fill(session)
        elif command == "catch-up":
            print(f"{catch_up(session)} jobs for orders that had none")
        elif command == "correct":
            name, email = arguments
            print(f"{len(correct_address(session, name, email))} jobs are tried again")
        elif command == "report":
            show(session)
        else:
            sys.exit(__doc__)


def show(session: Session) -> None:
    print("order  customer  total  receipt  job      what became of it")
    for row in report(session):
        order: Order = row.Order
        receipt = "sent" if order.receipt_at else "-"
        told = row.errors[-1]["message"] if row.state == "dead" else row.outcome
        line = (
            f"{order.id:5}  {order.customer.name:8}  {order.total:5}  {receipt:7}  {row.state or '-':7}  {told or ''}"
        )
        print(line.rstrip())


if __name__ == "__main__":
    main(*sys.argv[1:] or ["report"])
