"""The statements that reach a database, as the embedded server writes them into its log."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from jobq_cli.bench import statements
from jobq_cli.bench.scratch import Scratch

SENT = re.compile(rb"LOG:  (?:statement|execute [^:]*): ")


@dataclass(frozen=True, slots=True)
class ServerLog:
    """What is written behind `start` is counted."""

    path: Path
    start: int

    def statements(self) -> int:
        """How many there were since; BEGIN and COMMIT are two."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            return len(SENT.findall(file.read()))

    def from_now(self) -> ServerLog:
        return ServerLog(self.path, self.path.stat().st_size)


def log_of(scratch: Scratch, engine: sa.Engine) -> ServerLog | None:
    """Have the statements of one database logged, of connections that are new; None where nobody can count them."""
    if (path := scratch.log) is None or _logs_all(scratch):
        return None
    try:
        log = ServerLog(path, 0).from_now()
    except OSError:
        return None
    with scratch.keeper.connect() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE \"{engine.url.database}\" SET log_statement = 'all'")
    return log


def _logs_all(scratch: Scratch) -> bool:
    """Those of other databases, too: the log does not say of which."""
    with scratch.keeper.connect() as connection:
        return bool(connection.execute(statements.setting(), {"name": "log_statement"}).scalar_one() != "none")
