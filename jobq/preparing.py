"""What a call of enqueue will insert: all that can be checked is checked here, before any SQL is sent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeAlias

from jobq import checks
from jobq.callsite import callsite
from jobq.codec import MAX_BYTES
from jobq.context import current_id
from jobq.errors import ArgsError, OptionTypeError
from jobq.handlers import Args, Kind, needs_kind
from jobq.options import Options
from jobq.store.newjobs import Block, Manner, NewJob

TOGETHER = 200  # rows whose args are encoded at once: of longer ones a block would soon be over the limit of a row

Row: TypeAlias = "Args[...] | Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs of one call, each in a manner of its own; whether an error may come when some are inserted."""

    common: dict[str, Any]
    jobs: list[NewJob]
    may_fail: bool

    @property
    def number(self) -> int:
        return len(self.jobs)

    @property
    def manners(self) -> Collection[Manner]:
        return {job.manner for job in self.jobs}

    def changed(self, change: Callable[[Manner], Manner]) -> Batch:
        """The same jobs in manners that are changed."""
        manners = {manner: change(manner) for manner in self.manners}
        return replace(self, jobs=[NewJob(job.args, manners[job.manner]) for job in self.jobs])


@dataclass(frozen=True, slots=True)
class AlikeBatch:
    """The jobs of one call where nothing but their args tells them apart: nothing is kept for each of them."""

    common: dict[str, Any]
    manner: Manner
    blocks: list[Block]

    @property
    def number(self) -> int:
        return sum(block.number for block in self.blocks)

    @property
    def manners(self) -> Collection[Manner]:
        return [self.manner]

    def changed(self, change: Callable[[Manner], Manner]) -> AlikeBatch:
        """The same jobs in a manner that is changed."""
        return replace(self, manner=change(self.manner))


def prepare(handler: Kind[...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Batch:
    """One job."""
    kind = needs_kind(handler)
    text = kind.encode(args, kwargs)
    manner = _manner(kind, kind.effective())
    return Batch(_common(kind), [NewJob(text, manner)], _may_fail([manner]))


def prepare_many(handler: Kind[...], rows: Iterable[Row]) -> Batch | AlikeBatch:
    """Many; those without keys and in one manner, which is the usual call, in blocks."""
    kind = needs_kind(handler)
    if isinstance(rows, str | Mapping | Args):
        raise OptionTypeError(f"rows: expected a list of handler.args(...) or mappings, got one {type(rows).__name__}")
    given = list(rows)
    sources = [_source(kind, row, n) for n, row in enumerate(given)]
    manners = {source: _manner(kind, kind.effective(source)) for source in set(sources)}
    if len(manners) == 1 and not (manner := manners[sources[0]]).is_keyed:
        parts = [_blocks(kind, given[n : n + TOGETHER], n) for n in range(0, len(given), TOGETHER)]
        return AlikeBatch(_common(kind), manner, list(chain.from_iterable(parts)))
    jobs = [NewJob(_text(kind, row, n), manners[sources[n]]) for n, row in enumerate(given)]
    return Batch(_common(kind), jobs, _may_fail(manners.values()))


def _common(kind: Kind[...]) -> dict[str, Any]:
    return {"kind": kind.kind, "callsite": callsite()}


def _source(kind: Kind[...], row: Row, n: int) -> Kind[...]:
    """Whose options count for a row: mostly one for all rows, so that it is worked out once."""
    if type(row) is dict:
        return kind
    if isinstance(row, Args):
        if not kind.is_same(row.source):
            raise ArgsError(f"rows[{n}]", f"the args of {row.source.kind}, expected those of {kind.kind}")
        return kind if row.source._chosen is kind._chosen else row.source
    if not isinstance(row, Mapping):
        raise ArgsError(f"rows[{n}]", f"expected {kind.kind}.args(...) or a mapping, got {checks.show(row)}")
    return kind


def _blocks(kind: Kind[...], rows: Sequence[Row], first: int) -> list[Block]:
    """One; of long rows one for each, so that a statement can take as many as it should."""
    mappings = [row for row in rows if not isinstance(row, Args)]
    if len(mappings) == len(rows) and (text := kind.encode_together(mappings)) is not None:
        return [Block(text, len(rows))]
    texts = [_text(kind, row, n) for n, row in enumerate(rows, first)]
    text = ",".join(texts)
    return [Block(text, len(rows))] if len(text) <= MAX_BYTES else [Block(each, 1) for each in texts]


def _text(kind: Kind[...], row: Row, n: int) -> str:
    if isinstance(row, Args):
        return row.text
    try:
        return kind.encode((), row)
    except ArgsError as error:
        raise ArgsError(f"rows[{n}].{error.path}", error.problem) from error


def _manner(kind: Kind[...], options: Options) -> Manner:
    options.demand_sense()
    change = options.on_conflict if options.on_conflict in ("replace", "reschedule") else None
    # By a clock that may be wrong, which only tells whether a worker need be woken; when it is due, the database says.
    is_later = options.is_later(datetime.now(UTC))
    return Manner(options.binds(kind.secrets), is_later, change, must_be_new=options.on_conflict == "raise")


def _may_fail(manners: Collection[Manner]) -> bool:
    keyed = [manner for manner in manners if manner.is_keyed]
    may_fail = any(manner.change or manner.must_be_new for manner in keyed)
    return may_fail or (bool(keyed) and current_id() is not None)
