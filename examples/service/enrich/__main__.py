"""`python -m enrich CUSTOMER DOMAIN...`: asks for companies, as the customers' web application would."""

from __future__ import annotations

import sys

import jobq
import sqlalchemy as sa
from sqlalchemy.orm import Session

from enrich.apollo import look_up
from enrich.tools import Base, Company, database_url

engine = sa.create_engine(database_url())
Base.metadata.create_all(engine)
with Session(engine) as session, session.begin():
    for domain in sys.argv[2:]:
        session.merge(Company(domain=domain, customer=sys.argv[1]))
        print("job", jobq.enqueue(session, look_up, domain=domain).id)
