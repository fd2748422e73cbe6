"""Retry and cancel share their course: by id, or count, ask, change in chunks, tell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import typer

from jobq import bulk
from jobq.refusals import Refusal, Repaired
from jobq_cli.connect import connect
from jobq_cli.failures import Failed, say
from jobq_cli.output import print_json

SHOWN = 5  # refusals of a bulk repair that are told one by one


@dataclass(frozen=True, slots=True)
class Repair:
    """What is done (`retry`, `retried`), where, by which function of jobq."""

    verb: str
    past: str
    table: sa.Table
    change: Callable[[sa.Connection, Sequence[int]], Repaired]
    as_json: bool

    def run(
        self, database_url: str | None, ids: Sequence[int], predicates: Sequence[Any], *, dry_run: bool, yes: bool
    ) -> None:
        """By ids or by predicates, not both. Exit code 1 when a job named by its id was refused."""
        if bool(ids) == bool(predicates):
            raise typer.BadParameter(f"give either ids or --state, --queue, --kind to say what to {self.verb}")
        if ids and dry_run:
            raise typer.BadParameter("--dry-run counts what filters choose; it does not go with ids")
        with connect(database_url) as connection:
            if ids:
                self._by_ids(connection, sorted(set(ids)))
            else:
                self._in_bulk(connection, predicates, dry_run=dry_run, yes=yes)

    def _by_ids(self, connection: sa.Connection, ids: Sequence[int]) -> None:
        repaired = self.change(connection, ids)
        connection.commit()
        self._tell(repaired)
        if repaired.refused:
            raise typer.Exit(1)

    def _tell(self, repaired: Repaired) -> None:
        if self.as_json:
            print_json({"id": each, self.past: True} for each in repaired.ids)
            print_json({"id": each.id, self.past: False, "reason": str(each.error)} for each in repaired.refused)
            return
        for each in repaired.ids:
            print(f"{self.past} {each}")
        for refusal in repaired.refused:
            say(f"error: {refusal.error}")

    def _in_bulk(self, connection: sa.Connection, predicates: Sequence[Any], *, dry_run: bool, yes: bool) -> None:
        extent = bulk.extent(connection, self.table, predicates)
        connection.rollback()  # nobody waits for an answer with a transaction open
        if not dry_run and extent.matched:
            self._ask(extent.matched, yes=yes)
        changed, refused = 0, list[Refusal]()
        if not dry_run:
            chunks = bulk.in_chunks(connection, self.table, predicates, self.change, upto=extent.highest)
            with _progress(extent.matched) as advance:
                for repaired in chunks:
                    changed += len(repaired.ids)
                    refused += repaired.refused[: max(SHOWN - len(refused), 0)]
                    advance(len(repaired.ids) + len(repaired.refused))
        self._summarize(extent.matched, changed, refused, dry_run=dry_run)

    def _ask(self, matched: int, *, yes: bool) -> None:
        if yes:
            return
        jobs = "1 job" if matched == 1 else f"{matched} jobs"
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"would {self.verb} {jobs}: add --yes to do it, --dry-run to count only")
        if not typer.confirm(f"{self.verb} {jobs}?", err=True):
            raise Failed("nothing was changed")

    def _summarize(self, matched: int, changed: int, refused: Iterable[Refusal], *, dry_run: bool) -> None:
        for refusal in refused:
            say(f"left as it is: {refusal.error}")
        if self.as_json:
            print_json([{"matched": matched, self.past: changed, "dry_run": dry_run}])
        elif dry_run:
            print(f"would {self.verb} {matched}")
        else:
            print(f"{self.past} {changed} of {matched}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, when there is more than a chunk to do."""
    if total <= bulk.CHUNK or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
