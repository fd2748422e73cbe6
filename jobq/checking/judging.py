"""What is wrong with what was found: a pure decision."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobq.checking.found import LIBRARY, UNKNOWN, Arguments, Fault, Found, What
from jobq.codec.form import Form, Misfit
from jobq.codec.form import step as path_step
from jobq.errors import ArgsError
from jobq.handlers import Handler, Kind

FARTHEST = 20  # names for names that are followed
JUDGED = (What.ENQUEUE, What.ARGS, What.KIND, What.SCHEDULE, What.SQL)


@dataclass(frozen=True, slots=True)
class Report:
    """`used`: kinds that something enqueues. `unchecked`: what names no kind that could be read."""

    faults: list[Fault]
    enqueues: int
    schedules: int
    used: frozenset[str]
    unchecked: list[Found] = field(default_factory=list)


def judge(
    found: Sequence[Found], handlers: Mapping[str, Handler[..., Any]], names: Mapping[str, Kind[...]] | None = None
) -> Report:
    """Compare what was found with the handlers that there are. `names`: what dotted names are known to stand for."""
    kinds = _Kinds(found, names or {})
    faults: set[Fault] = set()
    used: set[str] = set()
    unchecked: list[Found] = []
    counts = dict.fromkeys(What, 0)
    for each in found:
        meant = kinds.of(each)
        if each.what not in JUDGED or (each.what is What.ARGS and meant is None):
            continue
        if each.function and not kinds.lead_to_jobq(each.function):
            continue
        counts[each.what] += 1
        if meant is None:
            unchecked.append(each)
        else:
            used.add(meant.kind)
            faults.update(_faults(each, meant, handlers, kinds))
    enqueues = counts[What.ENQUEUE] + counts[What.SQL]
    places = {(each.path, each.line): each for each in unchecked}  # jobq.enqueue(s, jobq.kind(name)) is one
    return Report(sorted(faults), enqueues, counts[What.SCHEDULE], frozenset(used), list(places.values()))


@dataclass(frozen=True, slots=True)
class _Meant:
    """A kind, and whether by a `jobq.kind(...)` or SQL, so that the args are JSON."""

    kind: str
    is_bare: bool


class _Kinds:
    """What dotted names stand for: as the application has them, else as the sources say."""

    def __init__(self, found: Sequence[Found], names: Mapping[str, Kind[...]]) -> None:
        self._names = names
        self.written = {each.kind for each in found if each.what is What.KIND}  # a wrong one is told where it stands
        self._places: dict[str, Found] = {}
        self._aliases: dict[str, Found] = {}
        for each in found:
            if each.what is What.HANDLER and each.kind is not None:
                self._places.setdefault(each.kind, each)
            if each.what in (What.HANDLER, What.ALIAS) and each.names:
                self._aliases[each.names[0]] = each

    def of(self, found: Found) -> _Meant | None:
        if found.kind is not None:
            return _Meant(found.kind, found.as_json)
        return self._first(found.names, FARTHEST)

    def place(self, kind: str) -> Found | None:
        """Where a source registers a handler of this kind."""
        return self._places.get(kind)

    def lead_to_jobq(self, names: Sequence[str], left: int = FARTHEST) -> bool:
        """Whether one of the names is a function of jobq's, handed on by modules of the project."""
        if any(name.startswith(f"{LIBRARY}.") for name in names):
            return True
        others = (self._aliases[name].names[1:] for name in names if name in self._aliases)
        return left > 0 and any(self.lead_to_jobq(each, left - 1) for each in others)

    def _first(self, names: Sequence[str], left: int) -> _Meant | None:
        meanings = (self._of_name(name, left) for name in names)
        return next((each for each in meanings if each is not None), None)

    def _of_name(self, name: str, left: int) -> _Meant | None:
        if (known := self._names.get(name)) is not None:
            return _Meant(known.kind, not isinstance(known, Handler))
        alias = self._aliases.get(name)
        if alias is None or left == 0:
            return None
        if alias.kind is not None:
            return _Meant(alias.kind, alias.as_json)
        return self._first(alias.names[1:], left - 1)


def _faults(found: Found, meant: _Meant, handlers: Mapping[str, Handler[..., Any]], kinds: _Kinds) -> Iterator[Fault]:
    handler = handlers.get(meant.kind)
    if handler is not None:
        for problem in misfits(handler, found.args, as_json=meant.is_bare) if found.args is not None else ():
            yield Fault(found.path, found.line, meant.kind, f"{meant.kind}: {problem}")
    elif found.what in (What.KIND, What.SQL) or not (meant.is_bare and meant.kind in kinds.written):
        problem = without_handler(meant.kind, handlers, kinds.place(meant.kind))
        yield Fault(found.path, found.line, meant.kind, problem)


def without_handler(kind: str, known: Collection[str], place: Found | None = None) -> str:
    """The words for a kind that no handler has, with what may be the way out."""
    said = f"no handler for kind {kind!r}"
    if place is not None:
        return f"{said}: {place.path}:{place.line} registers one, which the app does not import or include"
    close = difflib.get_close_matches(kind, sorted(known), n=1, cutoff=0.7)
    return f"{said}: is it {close[0]!r}?" if close else said


def misfits(handler: Handler[..., Any], args: Arguments, *, as_json: bool) -> Iterator[str]:
    """What is wrong with the arguments of a call, as far as it can be read."""
    codec = handler.codec
    if as_json and args.positional:
        yield "args: jobq.kind() takes arguments by name only"
        return
    if len(args.positional) > len(codec.positional):
        yield f"args: takes {len(codec.positional)} positional arguments, got {len(args.positional)}"
        return
    by_place = dict(zip(codec.positional, args.positional, strict=False))
    for name in by_place.keys() & args.named.keys():
        yield f"args.{name}: given twice, by position and by name"
    given = {**by_place, **args.named}
    for name, value in given.items():
        if name not in codec.forms:
            yield f"args{path_step(name)}: unknown argument (known: {', '.join(codec.parameters) or 'none'})"
        elif (problem := _problem(codec.forms[name], name, value, as_json=as_json)) is not None:
            yield problem
    if args.is_whole:
        yield from (f"args.{name}: missing" for name in codec.parameters if name in codec.required - given.keys())


def _problem(form: Form, name: str, value: Any, *, as_json: bool) -> str | None:
    """Why a literal does not fit a parameter; None when it does, or when only a run would tell."""
    if value is UNKNOWN:
        return None
    try:
        (form.decode if as_json else form.encode)(_as_json(value) if as_json else value)
    except Misfit as misfit:
        misfit.steps.append(f".{name}")
        return str(misfit.error())
    except (ArgsError, RecursionError) as error:
        return f"args.{name}: {error}"
    return None


def _as_json(value: Any) -> Any:
    """A literal of Python as what JSON makes of it."""
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_json(each) for key, each in value.items()}
    return value
