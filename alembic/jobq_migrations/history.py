"""jobq's revisions inside of an application's own Alembic history: in its transaction, online and offline.

A revision of the application calls `jobq_migrations.upgrade`; what runs then is the revisions of jobq themselves, with
the `op` of the migration around them, and jobq's own version table is kept in step.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import ModuleType
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.schema import CreateSchema, CreateTable, DropTable

from jobq.tables import SCHEMA
from jobq_migrations import schemas, turns
from jobq_migrations.places import BASE, DIRECTORY, REVISIONS, VERSION_TABLE
from jobq_migrations.refusals import refusals

# Of Alembic's loggers, so that a line shows where "Running upgrade ..." shows.
logger = logging.getLogger("alembic.jobq")

ORDER = (BASE, *REVISIONS)


def upgrade(*, to: str, since: str, schema: str) -> None:
    """See `jobq_migrations.upgrade`."""
    _demand_known(to, since)
    with _turn(schema) as part:
        before = since if part.offline else part.found()
        path = ORDER[ORDER.index(before) : ORDER.index(to) + 1]
        if len(path) < 2:
            part.say_done(before, to)
        elif before == BASE:
            part.prepare()
        for left, reached in pairwise(path):
            _module(reached).upgrade()
            part.record(left, reached)


def downgrade(*, to: str, since: str | None, schema: str) -> None:
    """See `jobq_migrations.downgrade`."""
    _demand_known(to, since or to)
    with _turn(schema) as part:
        before = _start(since, to) if part.offline else part.found()
        path = ORDER[ORDER.index(to) : ORDER.index(before) + 1]
        if len(path) < 2:
            part.say_done(before, to)
        for left, reached in pairwise(reversed(path)):
            _module(left).downgrade()
            part.record(left, reached)


class Part:
    """The migration around us, seen as one of jobq's schema."""

    def __init__(self, context: MigrationContext, schema: str) -> None:
        self.context = context
        self.schema = schema
        self.offline = context.as_sql
        self.versions = schemas.version_table(schema)

    @property
    def connection(self) -> sa.Connection:
        assert self.context.connection is not None, "online there is one"
        return self.context.connection

    def execute(self, statement: sa.Select[Any] | sa.Insert | sa.Update) -> None:
        """Offline the values are written out, also where the application's env.py does not ask for it."""
        if not self.offline:
            self.connection.execute(statement)
            return
        written = statement.compile(dialect=self.context.dialect, compile_kwargs={"literal_binds": True})
        self.context.execute(str(written))

    def found(self) -> str:
        """The revision that the database has.

        Raises: CommandError, when this version of jobq does not know it.
        """
        if not sa.inspect(self.connection).has_table(VERSION_TABLE, schema=self.schema):
            return BASE
        rows = self.connection.scalars(sa.select(self.versions.c.version_num))
        revision = ", ".join(sorted(rows)) or BASE
        if revision not in ORDER:
            raise CommandError(
                f"schema {self.schema} is at revision {revision}, newer than this jobq knows (it needs"
                f" {REVISIONS[-1]}): install the version of jobq that migrated it, or a later one"
            )
        return revision

    def prepare(self) -> None:
        if self.offline:
            self.context.execute(CreateSchema(self.schema, if_not_exists=True))
        else:
            schemas.ensure_schema(self.connection, self.schema)
        self.context.execute(CreateTable(self.versions, if_not_exists=True))

    def record(self, before: str, after: str) -> None:
        if after == BASE:
            self._remove_rest()
        elif before == BASE:
            self.execute(self.versions.insert().values(version_num=after))
        else:
            self.execute(self.versions.update().values(version_num=after))

    def say_done(self, found: str, wanted: str) -> None:
        state = "not there" if found == BASE else f"at revision {found} already"
        logger.info("the tables of jobq (schema %s) are %s: nothing to do for %s", self.schema, state, wanted)

    def _remove_rest(self) -> None:
        if self.offline:  # who made the schema cannot be known
            self.context.execute(DropTable(self.versions))
        else:
            schemas.remove_rest(self.connection, self.schema)


@contextmanager
def _turn(schema: str) -> Iterator[Part]:
    """jobq's turn in the migration around us: alone, with limits of its own, which end with the block."""
    context = _context()
    part = Part(context, schema if context.as_sql else _translated(context, schema))
    with _options(context, part.schema), refusals(part.schema, turns.LOCK_TIMEOUT):
        part.execute(turns.remember_limits())
        if not part.offline:
            turns.take_turn(part.connection, part.schema)
        part.execute(turns.limits())
        yield part
        part.execute(turns.restore_limits())


@contextmanager
def _options(context: MigrationContext, schema: str) -> Iterator[None]:
    """What the revisions read while they run. The naming convention of the application's metadata is none of them:
    the constraints have the names that `jobq migrate` gives them."""
    before = dict(context.opts)
    context.opts.update(jobq_schema=schema, target_metadata=None)
    try:
        yield
    finally:
        context.opts.clear()
        context.opts.update(before)


def _context() -> MigrationContext:
    try:
        context = op.get_context()
    except NameError as error:  # Alembic's word for: not now
        raise CommandError("jobq_migrations works inside of a revision's upgrade() or downgrade() only") from error
    if context.dialect.name != "postgresql":
        raise CommandError(f"the tables of jobq need PostgreSQL, this history runs on {context.dialect.name}")
    return context


def _translated(context: MigrationContext, schema: str) -> str:
    """The schema that the connection's schema_translate_map gives for `jobq`."""
    options = context.connection.get_execution_options() if context.connection else {}
    translations: dict[str | None, str | None] = options.get("schema_translate_map") or {}
    return (schema == SCHEMA and translations.get(SCHEMA)) or schema


def _module(revision: str) -> ModuleType:
    return ScriptDirectory(str(DIRECTORY)).get_revision(revision).module


def _demand_known(*revisions: str) -> None:
    for revision in revisions:
        if revision not in ORDER:
            raise CommandError(
                f"this jobq does not know its revision {revision!r} (it knows {', '.join(REVISIONS)}):"
                " install the version of jobq that this migration was written with, or a later one"
            )


def _start(since: str | None, to: str) -> str:
    if since is None:
        raise CommandError(
            "offline the revision to start from has to be said:"
            f' jobq_migrations.downgrade(to="{to}", since="{REVISIONS[-1]}")'
        )
    return since
