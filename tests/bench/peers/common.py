"""What every peer shares: its steps, each of which is run as a process of its own in the peer's environment.

    peer_x.py info                          JSON: package, version, settings, loop, at_once, done_sql
    peer_x.py setup                         an empty schema
    peer_x.py enqueue_one --jobs N          JSON: seconds, of single enqueues in transactions of their own
    peer_x.py enqueue_many --jobs N         JSON: seconds, of the bulk call
    peer_x.py paced --jobs N --interval S   an enqueue every S seconds, with its times in the probe
    peer_x.py history --done N --future M   rows that only weigh the tables down
    peer_x.py worker                        until SIGTERM

The database is BENCH_DSN. `probe` is cli/jobq_cli/bench/probe.py, which compare.py puts on the path.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from importlib.metadata import version
from typing import Any, TypeVar

from probe import Probe, now

__all__ = ["PROBE", "Peer", "apace", "has_uvloop", "main", "now", "pace"]

R = TypeVar("R")
PROBE = Probe()


class Peer:
    """A queue, driven through its public API. Subclasses define the steps; plain functions that run to completion."""

    package = ""  # on PyPI
    done_sql = ""  # counts the jobs that are durably finished
    settings = ""  # what was tuned, in words
    at_once = ""  # how many jobs a process runs or takes at a time, in words

    def __init__(self) -> None:
        self.dsn = os.environ["BENCH_DSN"]
        self.workers = int(os.environ.get("BENCH_WORKERS", "1"))
        self.loop = "uvloop" if has_uvloop() else "asyncio"

    def setup(self) -> None: ...
    def enqueue_one(self, n: int) -> float: ...
    def enqueue_many(self, n: int) -> float: ...
    def paced(self, n: int, interval: float) -> None: ...
    def history(self, done: int, future: int) -> None: ...
    def worker(self) -> None: ...

    def run_async(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """In uvloop, where it is installed."""
        if not has_uvloop():
            return asyncio.run(coroutine)
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(coroutine)

    def connect(self, **options: Any) -> Any:
        """A connection of psycopg in autocommit."""
        import psycopg

        return psycopg.connect(self.dsn, autocommit=True, **options)

    def fresh_schema(self) -> None:
        """Drop all that the database of the benchmark holds."""
        with self.connect() as connection:
            names = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            ).fetchall()
            for (name,) in names:
                connection.execute(f'DROP SCHEMA "{name}" CASCADE')
            connection.execute("CREATE SCHEMA public")


def has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return False
    return True


def pace(n: int, interval: float) -> Iterator[int]:
    """0 to n - 1, one every `interval` seconds."""
    began = now()
    for i in range(n):
        time.sleep(max(0.0, began + i * interval - now()))
        yield i


async def apace(n: int, interval: float) -> AsyncIterator[int]:
    """`pace` for coroutines."""
    began = now()
    for i in range(n):
        await asyncio.sleep(max(0.0, began + i * interval - now()))
        yield i


def main(peer_class: type[Peer]) -> None:
    """Run the step that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=0.05)
    parser.add_argument("--done", type=int, default=0)
    parser.add_argument("--future", type=int, default=0)
    asked = parser.parse_args()
    peer = peer_class()
    if asked.step == "info":
        about = {name: getattr(peer, name) for name in ("package", "settings", "loop", "at_once", "done_sql")}
        print(json.dumps({**about, "version": version(peer.package)}))
    elif asked.step in ("enqueue_one", "enqueue_many"):
        print(json.dumps({"seconds": getattr(peer, asked.step)(asked.jobs)}))
    elif asked.step == "paced":
        peer.paced(asked.jobs, asked.interval)
    elif asked.step == "history":
        peer.history(asked.done, asked.future)
    else:
        getattr(peer, asked.step)()
