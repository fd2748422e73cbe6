"""Retry and cancel share their course: by id, or count, ask, change in chunks, tell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import sqlalchemy as sa
import typer

from jobq import bulk, showing
from jobq.bulk import Extent
from jobq.model import State
from jobq.refusals import Refusal, Repaired
from jobq_cli.audit import record
from jobq_cli.connect import connect
from jobq_cli.failures import Failed, say
from jobq_cli.filters import Filters
from jobq_cli.options import AsJson, DatabaseUrl, DryRun, JobIds, Yes
from jobq_cli.output import print_json
from jobq_cli.progress import progress

SHOWN = 5  # refusals of a bulk repair that are told one by one
Change = Callable[[sa.Connection, Sequence[int]], Repaired]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """The options that retry and cancel share."""

    job_ids: JobIds = None
    dry_run: DryRun = False
    yes: Yes = False
    database_url: DatabaseUrl = None
    as_json: AsJson = False


@dataclass(slots=True)
class Course:
    """How far a repair of many has come."""

    changed: int = 0
    refused: list[Refusal] = field(default_factory=list)

    def add(self, repaired: Repaired) -> int:
        """How many jobs more have been seen to."""
        self.changed += len(repaired.ids)
        self.refused += repaired.refused[: max(SHOWN - len(self.refused), 0)]
        return len(repaired.ids) + len(repaired.refused)


@dataclass(frozen=True, slots=True)
class Repair:
    """What is done (`retry`, `retried`), where, by which function of jobq, to jobs in which states."""

    verb: str
    past: str
    table: sa.Table
    change: Change
    states: Collection[State]

    def run(self, filters: Filters, manner: Manner, *, with_state: bool) -> None:
        """By ids or by filters, not both. Exit code 1 when a job named by its id was refused."""
        ids = sorted(set(manner.job_ids or []))
        if bool(ids) == (bool(filters) or with_state):
            wanted = "give either ids or --state, --queue, --kind, --older, --newer, --arg, --error"
            raise typer.BadParameter(f"{wanted} to say what to {self.verb}")
        if ids and manner.dry_run:
            raise typer.BadParameter("--dry-run counts what filters choose; it does not go with ids")
        with connect(manner.database_url) as connection:
            if ids:
                self._by_ids(connection, ids, manner)
            else:
                self._in_bulk(connection, filters, manner)

    def _by_ids(self, connection: sa.Connection, ids: Sequence[int], manner: Manner) -> None:
        repaired = self.change(connection, ids)
        connection.commit()
        self._tell(repaired, manner)
        if repaired.refused:
            raise typer.Exit(1)

    def _tell(self, repaired: Repaired, manner: Manner) -> None:
        if manner.as_json:
            print_json({"id": each, self.past: True} for each in repaired.ids)
            print_json({"id": each.id, self.past: False, "reason": str(each.error)} for each in repaired.refused)
            return
        for each in repaired.ids:
            print(f"{self.past} {each}")
        for refusal in repaired.refused:
            say(f"error: {refusal.error}")

    def _in_bulk(self, connection: sa.Connection, filters: Filters, manner: Manner) -> None:
        predicates = filters.where(self.table, self.states)
        extent = bulk.extent(connection, self.table, predicates)
        secrets = showing.published_secrets(connection, filters.kind)
        connection.rollback()  # nobody waits for an answer with a transaction open
        course = Course()
        if not manner.dry_run:
            if extent.matched:
                self._ask(extent.matched, yes=manner.yes)
            chunks = bulk.in_chunks(connection, self.table, predicates, self.change, upto=extent.highest)
            which = filters.described(self.states, secrets=secrets)
            with self._audited(which, extent, course), progress(extent.matched, chunk=bulk.CHUNK) as advance:
                for repaired in chunks:
                    advance(course.add(repaired))
        self._summarize(extent.matched, course, manner)

    def _ask(self, matched: int, *, yes: bool) -> None:
        if yes:
            return
        jobs = "1 job" if matched == 1 else f"{matched} jobs"
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"would {self.verb} {jobs}: add --yes to do it, --dry-run to count only")
        if not typer.confirm(f"{self.verb} {jobs}?", err=True):
            raise Failed("nothing was changed")

    @contextmanager
    def _audited(self, which: str, extent: Extent, course: Course) -> Iterator[None]:
        """Also what was changed before a failure or Ctrl-C: each chunk is committed by itself."""
        try:
            yield
        finally:
            if extent.matched:
                record(self.past, which=which, changed=course.changed, matched=extent.matched)

    def _summarize(self, matched: int, course: Course, manner: Manner) -> None:
        for refusal in course.refused:
            say(f"left as it is: {refusal.error}")
        if manner.as_json:
            print_json([{"matched": matched, self.past: course.changed, "dry_run": manner.dry_run}])
        elif manner.dry_run:
            print(f"would {self.verb} {matched}")
        else:
            print(f"{self.past} {course.changed} of {matched}")
