"""A small shop with an Alembic history of its own, written into a folder; `alembic` and `jobq` are typed there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

INI = """
[alembic]
script_location = %(here)s/migrations
prepend_sys_path = .

[loggers]
keys = root,alembic
[handlers]
keys = console
[formatters]
keys =
[logger_root]
level = WARNING
handlers = console
[logger_alembic]
level = INFO
handlers =
qualname = alembic
[handler_console]
class = StreamHandler
args = (sys.stderr,)
"""

PYPROJECT = """
[project]
name = "shop"

[tool.alembic]
script_location = "%(here)s/migrations"
prepend_sys_path = ["."]
"""

MODELS = """
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

names = {"pk": "pk_%(table_name)s", "ck": "ck_%(table_name)s_%(constraint_name)s", "ix": "ix_%(column_0_label)s",
         "uq": "uq_%(table_name)s_%(column_0_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s"}

class Base(DeclarativeBase):
    metadata = sa.MetaData(naming_convention=names)

class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(sa.Text, unique=True)

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customers.id"), index=True)
    note: Mapped[str | None] = mapped_column(sa.Text)
"""

# OPTIONS and OFFLINE are replaced.
CONFIGURE = """
import os
from logging.config import fileConfig

import sqlalchemy as sa
from alembic import context
import jobq_migrations
from models import Base

if context.config.config_file_name and os.path.exists(context.config.config_file_name):
    fileConfig(context.config.config_file_name)

def mine(name, type_, parent_names):
    return not (type_ == "table" and name == "legacy")

def run(connection):
    context.configure(connection=connection, target_metadata=Base.metadata, OPTIONS)
    with context.begin_transaction():
        context.run_migrations()

def run_offline():
    context.configure(url=os.environ["SHOP_URL"], target_metadata=Base.metadata, OFFLINE)
    with context.begin_transaction():
        context.run_migrations()
"""

PLAIN_ENV = """
if context.is_offline_mode():
    run_offline()
else:
    with sa.create_engine(os.environ["SHOP_URL"], poolclass=sa.NullPool).connect() as connection:
        run(connection)
"""

ASYNC_ENV = """
import asyncio
from sqlalchemy.ext.asyncio import create_async_engine

async def run_async():
    engine = create_async_engine(os.environ["SHOP_URL"], poolclass=sa.NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(run)
    await engine.dispose()

if context.is_offline_mode():
    run_offline()
else:
    asyncio.run(run_async())
"""

TEMPLATE = '''"""${message}"""
from alembic import op
import sqlalchemy as sa
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade():
    ${upgrades if upgrades else "pass"}


def downgrade():
    ${downgrades if downgrades else "pass"}
'''

CUSTOMERS = """
op.create_table("customers", sa.Column("id", sa.Integer, primary_key=True),
                sa.Column("email", sa.Text, nullable=False, unique=True))
"""
ORDERS = """
op.create_table("orders", sa.Column("id", sa.Integer, primary_key=True),
                sa.Column("customer_id", sa.Integer, sa.ForeignKey("customers.id"), nullable=False, index=True))
"""
ORDERS_DATA = """
op.execute("INSERT INTO customers (email) VALUES ('ada@example.org')")
op.execute("INSERT INTO orders (customer_id) SELECT id FROM customers")
"""
NOTES = 'op.add_column("orders", sa.Column("note", sa.Text))'


class Shop:
    """The folder of an application, and its owner's command line."""

    def __init__(self, directory: Path, url: str = "postgresql+psycopg://nobody@127.0.0.1:1/nowhere") -> None:
        self.directory = directory
        self.python = sys.executable
        self.environment = {**os.environ, "SHOP_URL": url, "JOBQ_DATABASE_URL": url}
        self.environment.pop("ALEMBIC_CONFIG", None)
        self.versions = directory / "migrations/versions"
        self.versions.mkdir(parents=True)
        self.write("alembic.ini", INI)
        self.write("models.py", MODELS)
        self.write("migrations/script.py.mako", TEMPLATE)
        self.write_env()

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_env(self, options: str = "", *, offline: str = "", end: str = PLAIN_ENV) -> None:
        begin = CONFIGURE.replace("OPTIONS", options).replace("OFFLINE", offline)
        self.write("migrations/env.py", begin + end)

    def write_revision(self, name: str, after: str | None, up: str, down: str = "pass") -> None:
        head = f"from alembic import op\nimport sqlalchemy as sa\nrevision = {name!r}\ndown_revision = {after!r}\n"
        bodies = [f"def {function}():\n" + _indented(body) for function, body in (("upgrade", up), ("downgrade", down))]
        self.write(f"migrations/versions/{name}.py", "\n".join([head, *bodies]))

    def write_history(self) -> None:
        """Three revisions of its own, with data."""
        self.write_revision("s1", None, CUSTOMERS, 'op.drop_table("customers")')
        self.write_revision("s2", "s1", ORDERS + ORDERS_DATA, 'op.drop_table("orders")')
        self.write_revision("s3", "s2", NOTES, 'op.drop_column("orders", "note")')

    def on(self, url: str) -> Shop:
        """The next commands are for this database."""
        self.environment |= {"SHOP_URL": url, "JOBQ_DATABASE_URL": url}
        return self

    def alembic(self, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        return self._run("alembic", *arguments, fails=fails)

    def jobq(self, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        return self._run("jobq", *arguments, fails=fails)

    def files(self) -> set[str]:
        return {path.name for path in self.versions.glob("*.py")}

    def new(self, *options: str) -> str:
        """The text of the revision that `jobq migration new` writes."""
        before = self.files()
        self.jobq("migration", "new", *options)
        (name,) = self.files() - before
        return (self.versions / name).read_text()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, "-m", *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _run(self, *arguments: str, fails: bool) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.python, "-m", *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done


def _indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())
