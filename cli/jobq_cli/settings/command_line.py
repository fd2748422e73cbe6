"""The options of a command, made from the entries: all are text here, so that each fault is found, not only one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

from jobq.worker.rules import Flag, Names, Rule, Span, Whole
from jobq_cli.settings.entries import Entry, entries
from jobq_cli.settings.rules import Choice
from jobq_cli.settings.show import written

F = TypeVar("F", bound=Callable[..., None])
ONLY_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def takes_settings(function: F) -> F:
    """Give a command the entries as options, in place of its `**given`; typer reads the signature."""
    signature = inspect.signature(function, eval_str=True)
    own = [
        each.replace(kind=ONLY_BY_NAME) for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD
    ]
    made = [_parameter(entry) for entry in entries().values() if entry.name not in signature.parameters]
    function.__signature__ = signature.replace(parameters=[*made, *own])  # type: ignore[attr-defined]
    return function


def as_text(given: Mapping[str, Any]) -> dict[str, str | bool | None]:
    """An option that may be given again as one text, as the environment would hold it."""
    return {name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()}


def _parameter(entry: Entry) -> inspect.Parameter:
    kind, names = _form(entry)
    told = written(entry.name, entry.default) or entry.spec.unset
    about = f"{entry.spec.about} [{told}]" if told else entry.spec.about
    option = typer.Option(*names, metavar=_metavar(entry), help=about, show_default=False)
    return inspect.Parameter(entry.name, ONLY_BY_NAME, default=None, annotation=Annotated[kind, option])


def _form(entry: Entry) -> tuple[Any, tuple[str, ...]]:
    match entry.spec.rule:
        case Flag():
            return bool | None, (f"{entry.flag}/--no-{entry.key}",)
        case Names():
            return list[str] | None, (entry.flag, entry.flag.removesuffix("s"))  # --queue a --queue b, too
    return str | None, (entry.flag,)


def _metavar(entry: Entry) -> str | None:
    return entry.spec.metavar or _metavar_of(entry.spec.rule)


def _metavar_of(rule: Rule) -> str | None:
    match rule:
        case Whole():
            return "N"
        case Span():
            return "SPAN"
        case Choice():
            return "|".join(rule.words)
        case Flag():
            return None
    return "TEXT"
