"""A group of commands that imports a command's module when it is invoked, so that `jobq --help` stays quick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command as build

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is (`module:name`, a function or a Typer of its own) and its line in the help."""

    place: str
    help: str

    def load(self, name: str) -> Any:
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            function, found = found, typer.Typer(**PLAIN)
            found.command(name)(function)
        command = build(found)
        command.name = name
        return command


class Commands(Mapping[str, Any]):
    """Commands by name: the names are known without importing anything."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries

    def __getitem__(self, name: str) -> Any:
        return self.entries[name].load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class LazyGroup(TyperGroup):
    """The group of the commands in `entries`; subclass it to name them."""

    entries: ClassVar[Mapping[str, Entry]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = Commands(self.entries)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.entries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.entries.items()])
