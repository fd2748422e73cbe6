"""What every measure works with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from jobq_cli.bench import machine, statements
from jobq_cli.bench.scratch import Scratch
from jobq_cli.bench.sizes import Sizes

Tell = Callable[[str], object]


@dataclass(slots=True)
class Bench:
    """A server, how much is measured, the file that handlers count in, and who is told of each step."""

    scratch: Scratch
    sizes: Sizes
    probe: str
    tell: Tell
    log_lines: int = 0  # that the workers have written while something was measured
    _server: int | None = field(default=None, init=False)

    @contextmanager
    def database(self) -> Iterator[sa.Engine]:
        """A new one, dropped afterwards."""
        engine = self.scratch.database()
        try:
            yield engine
        finally:
            self.scratch.drop(engine)

    @property
    def server(self) -> int | None:
        """The server's first process, None where its processor time cannot be read: it runs elsewhere."""
        if self._server is None and machine.IS_KNOWN:
            with self.scratch.keeper.connect() as connection:
                self._server = _postmaster(connection.execute(statements.backend()).scalar_one())
        return self._server

    def rounds(self) -> range:
        return range(1, self.sizes.rounds + 1)


def run(connection: sa.Engine, statement: sa.Executable, **values: object) -> None:
    """One statement in its transaction."""
    with connection.begin() as transaction:
        transaction.execute(statement, values)


def vacuum(engine: sa.Engine) -> None:
    """As an autovacuum leaves the tables, so that none comes in the middle."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE jobq.jobs")
        connection.exec_driver_sql("VACUUM ANALYZE jobq.finished_jobs")
        connection.exec_driver_sql("CHECKPOINT")


def wait_until(holds: Callable[[], bool], *, seconds: float, every: float = 0.01) -> bool:
    """Whether it came to hold in time."""
    until = time.monotonic() + seconds
    while not (is_so := holds()) and time.monotonic() < until:
        time.sleep(every)
    return is_so


def percentile(values: list[float], share: float) -> float:
    """Of the values, that which so large a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _postmaster(backend: int) -> int | None:
    """The parent of the process that serves us, if that is one of this machine, and PostgreSQL's."""
    try:
        name = Path(f"/proc/{backend}/comm").read_text().strip()
        return machine.parent_of(backend) if name.startswith("postgres") else None
    except OSError:
        return None
