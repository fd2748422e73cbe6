"""The revisions of jobq's schema, the Alembic environment that runs them, and what an application's own history calls.

The revision that a database has reached stands in `schema_version` inside jobq's own schema, so that an application's
`alembic_version` is neither read nor written. `jobq migrate` and an application's history both keep it: whoever comes
second finds the work done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobq.tables import SCHEMA
from jobq_migrations.places import BASE, DIRECTORY, REVISIONS, VERSION_TABLE

__all__ = ["DIRECTORY", "REVISIONS", "VERSION_TABLE", "downgrade", "include_name", "upgrade"]


def upgrade(*, to: str, since: str = BASE, schema: str = SCHEMA) -> None:
    """Bring jobq's tables to revision `to`: for a revision of an application's own Alembic history.

    `jobq migration new` writes such revisions. It runs in the transaction of the revision around it, behind the lock
    that `jobq migrate` takes, and gives up after waiting half a second for the locks of other sessions. Where the
    tables have the revision, or a later one, it says so and does nothing. `since` is the revision that the history
    brought before this one; it counts where no database can be asked (`alembic upgrade --sql`).

    Raises: CommandError of Alembic, one line, when the tables cannot be brought there.
    """
    from jobq_migrations import history

    history.upgrade(to=to, since=since, schema=schema)


def downgrade(*, to: str, since: str | None = None, schema: str = SCHEMA) -> None:
    """Take jobq's tables back to revision `to`, "base" for none at all, with every job in what is dropped.

    At "base" the schema goes too, where it is jobq's own and empty. `since` is the revision to start from where no
    database can be asked (`alembic downgrade --sql`).

    Raises: CommandError of Alembic, one line, when the tables cannot be taken there.
    """
    from jobq_migrations import history

    history.downgrade(to=to, since=since, schema=schema)


def include_name(name: str | None, type_: str, parent_names: Mapping[Any, Any], *, schema: str | None = SCHEMA) -> bool:
    """False for jobq's tables: for the `include_name` of an application whose env.py has `include_schemas=True`.

        context.configure(..., include_schemas=True, include_name=jobq_migrations.include_name)

    Beside a filter of your own: `include_name=lambda *of: mine(*of) and jobq_migrations.include_name(*of)`. Without
    `include_schemas` Alembic does not look into the schema `jobq`, and no filter is needed. With the tables in another
    schema: `functools.partial(jobq_migrations.include_name, schema="shop")`, None for the default schema.
    """
    from jobq_migrations import names

    return type_ != "table" or parent_names.get("schema_name") != schema or name not in names.tables()
