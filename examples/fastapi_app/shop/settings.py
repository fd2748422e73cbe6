from __future__ import annotations

import os

import sqlalchemy as sa
from jobq import embedded


def database_url() -> sa.URL:
    # Without DATABASE_URL: the PostgreSQL of this folder, which comes with jobq[embedded]. `jobq run`, `jobq list` ...
    # take the same one, so that the server, the worker and the command line meet without any setting.
    url = os.environ.get("DATABASE_URL") or embedded.ensure(embedded.project_directory())
    return sa.make_url(url).set(drivername="postgresql+psycopg")
