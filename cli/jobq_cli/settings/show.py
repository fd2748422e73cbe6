"""The settings for people and programs: `jobq run --show-options`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobq import urls
from jobq_cli.output import Column, print_json, print_table
from jobq_cli.settings.merge import Setting, Settings
from jobq_cli.text import span

COLUMNS: list[Column[Setting]] = [
    Column("option", lambda setting: setting.entry.key),
    Column("value", lambda setting: written(setting.entry.name, setting.value) or setting.entry.spec.unset or "-"),
    Column("from", lambda setting: setting.source, shrinks=True),
]


def show(settings: Settings, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {"option": each.entry.key, "value": _plain(each.entry.name, each.value), "from": each.source}
            for each in settings.found.values()
        )
    else:
        print_table(settings.found.values(), COLUMNS)


def written(name: str, value: Any) -> str:
    """A value as it would be written; nothing for None."""
    match value := _plain(name, value):
        case None:
            return ""
        case bool():
            return str(value).lower()
        case timedelta():
            return span(value)
        case list() | tuple():
            return ", ".join(value)
    return str(value)


def _plain(name: str, value: Any) -> Any:
    """No password leaves here."""
    return urls.safe(value) if name.endswith("_url") and value is not None else value
