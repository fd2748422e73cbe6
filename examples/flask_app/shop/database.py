"""Where the shop's tables are; `db.session` is the one of the request, or of the job."""

from __future__ import annotations

import sqlalchemy as sa
from flask_sqlalchemy import SQLAlchemy
from jobq import embedded, urls
from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase): ...


db = SQLAlchemy(model_class=Base)


def database_url() -> sa.URL | str:
    """DATABASE_URL, read as the commands of jobq do; without it a PostgreSQL of this folder's own."""
    return urls.from_environment() or embedded.ensure(embedded.project_directory())
