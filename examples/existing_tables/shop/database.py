"""Sessions of the shop's database."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa
from jobq import embedded, urls
from sqlalchemy.orm import Session, sessionmaker


def database_url() -> sa.URL | str:
    """DATABASE_URL, read as the commands of jobq do; without it a PostgreSQL of this folder's own."""
    return urls.from_environment() or embedded.ensure(embedded.project_directory())


@cache
def sessions() -> sessionmaker[Session]:
    return sessionmaker(sa.create_engine(database_url()))
