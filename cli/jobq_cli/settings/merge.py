"""The settings of a worker from their sources: values in, values and faults out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jobq.worker.rules import Rule, shown
from jobq_cli.settings.entries import Entry, entries
from jobq_cli.settings.project import Project
from jobq_cli.settings.reading import Unreadable, from_line, from_text, from_toml

DEFAULT = "default"
SHARED = "DATABASE_URL"  # of the application: read where nothing says what the worker's own is


@dataclass(frozen=True, slots=True)
class Setting:
    """An option, its value, and where that comes from, in words."""

    entry: Entry
    value: Any
    source: str = DEFAULT


@dataclass(slots=True)
class Settings:
    """What was found, by the options' names in Python, and everything that is wrong with it, one line each.

    refused: what some source says wrongly. is_whole: False where a file could not be read: nobody knows what it says.
    """

    found: dict[str, Setting] = field(default_factory=lambda: {n: Setting(e, e.default) for n, e in entries().items()})
    faults: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    project: Project | None = None
    refused: set[str] = field(default_factory=set)
    is_whole: bool = True

    def refuse(self, name: str, fault: str) -> None:
        self.refused.add(name)
        self.faults.append(fault)

    def __getitem__(self, name: str) -> Any:
        return self.found[name].value

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self[name] for name in names}

    @property
    def app_folder(self) -> Path | None:
        """Where the app is, when a file names it: beside that file. None: wherever the command was typed."""
        if self.project is None or self.found["app"].source != f"{self.project.where} app":
            return None
        return self.project.path.parent


def merge(project: Project | None, environment: Mapping[str, str], line: Mapping[str, str | bool | None]) -> Settings:
    """Each later source wins; what is wrong in an earlier one is a fault all the same.

    `line`: what the command line gives, by the options' names in Python; None for what it leaves out.
    """
    settings = Settings(project=project)
    if project is not None:
        _read_project(settings, project)
    for entry in entries().values():
        if text := environment.get(entry.variable, "").strip():
            _take(settings, entry, entry.variable, text, from_text)
    for name, given in line.items():
        if given is not None:
            entry = entries()[name]
            _take(settings, entry, _flag(entry, given), given, from_line)
    if settings["database_url"] is None and (text := environment.get(SHARED, "").strip()):
        _take(settings, entries()["database_url"], SHARED, text, from_text)
    settings.doubts += _doubts(environment)
    return settings


def _read_project(settings: Settings, project: Project) -> None:
    known = {entry.key: entry for entry in entries().values() if entry.spec.in_project}
    for key, value in project.table.items():
        where = f"{project.where} {key}"
        if key in known:
            _take(settings, known[key], where, value, from_toml)
        else:
            settings.faults.append(f"{where}: {_unknown(key, known)}")


def _unknown(key: str, known: Mapping[str, Entry]) -> str:
    secret = entries().get(key.replace("-", "_"))
    if secret is not None and not secret.spec.in_project:
        return f"it may hold a password, which a file that is committed should not: set {secret.variable}"
    close = get_close_matches(key.replace("_", "-").lower(), known, n=1)
    return f"no such option; did you mean {close[0]}?" if close else f"no such option (known: {', '.join(known)})"


def _take(settings: Settings, entry: Entry, where: str, given: Any, read: Callable[[Rule, Any], Any]) -> None:
    rule = entry.spec.rule
    try:
        value = read(rule, given)
    except Unreadable:
        got = str(given).lower() if isinstance(given, bool) else shown(given)
        settings.refuse(entry.name, f"{where} must be {rule.allowed}, got {got}")
        return
    if (fault := rule.fault(where, value)) is not None:
        settings.refuse(entry.name, str(fault))
    else:
        settings.found[entry.name] = Setting(entry, value, where)


def _flag(entry: Entry, given: str | bool) -> str:
    return entry.flag.replace("--", "--no-", 1) if given is False else entry.flag


def _doubts(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that are almost those of an option; others with our prefix may be the application's own."""
    known = [entry.variable.removeprefix("JOBQ_") for entry in entries().values()]
    for variable in environment:
        name = variable.removeprefix("JOBQ_")
        if name != variable and name not in known and (close := get_close_matches(name, known, n=1, cutoff=0.8)):
            yield f"{variable} is not read: did you mean JOBQ_{close[0]}?"
