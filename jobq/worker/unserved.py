"""What the leader says of jobs that nobody can run."""

from __future__ import annotations

import logging

from jobq.database import Database
from jobq.store import counting

logger = logging.getLogger("jobq.worker")


class UnservedKinds:
    """Says once of each kind how many jobs wait for it while no live worker has a handler for it.

    Two looks have to find it: when a fleet starts, the first worker looks before the others are there.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[str, int] = {}
        self._said: set[str] = set()

    async def run_once(self) -> None:
        """One look; a kind that was served meanwhile is said anew."""
        found = await self._database.run(counting.unknown_kinds)
        for kind in sorted(found.keys() & self._found.keys() - self._said):
            jobs = "1 job waits" if found[kind] == 1 else f"{found[kind]} jobs wait"
            logger.warning("%s for kind %s, which no live worker knows (jobq list --kind %s)", jobs, kind, kind)
        self._said = found.keys() & self._found.keys()
        self._found = found
