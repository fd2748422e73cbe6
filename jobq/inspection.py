"""Is the installation well? What `jobq health` asks, in the caller's transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterable
from datetime import timedelta
from typing import Any

from jobq import checks
from jobq.admin import workers
from jobq.bind import AsyncBind, Bind, connection_of, over
from jobq.diagnosis import Check, Health, diagnose
from jobq.errors import SchemaError
from jobq.schema import check_schema
from jobq.store.counting import counts
from jobq.tally import stats_of

MOST_WORKERS = 100_000


def health(session: Bind, /, *, min_workers: int = 1, max_age: timedelta | None = None) -> Health:
    """Whether the schema is right, workers live, and what is due is served by one of them.

    `max_age`: also whether no due job of any queue waits longer. What the database itself raises reaches the caller.
    """
    checks.whole("min_workers", min_workers, lowest=0, highest=MOST_WORKERS)
    if max_age is not None:
        checks.span("max_age", max_age)
    connection = connection_of(session, "health")
    try:
        check_schema(connection)
    except SchemaError as error:
        return Health((Check("schema", str(error)),))
    found = counts(connection)
    said = diagnose(stats_of(found), workers(connection), _due(found.waiting), min_workers=min_workers, max_age=max_age)
    return Health((Check("schema"), *said))


def health_async(
    session: AsyncBind, /, *, min_workers: int = 1, max_age: timedelta | None = None
) -> Coroutine[Any, Any, Health]:
    """`health` for an AsyncSession or AsyncConnection."""
    return over(session, lambda bind: health(bind, min_workers=min_workers, max_age=max_age), called="health")


def _due(waiting: Iterable[Any]) -> Counter[tuple[str, str]]:
    """How many jobs are ready, by queue and kind, as far as they are counted."""
    due: Counter[tuple[str, str]] = Counter()
    for row in waiting:
        due[row.queue, row.kind] += row.ready
    return due
