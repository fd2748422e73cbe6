"""Where the worker connects to: from a URL as it is, from an engine what it would connect with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from jobq.tables import SCHEMA
from jobq.urls import normalize

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

LIBPQ_DRIVERS = frozenset({"psycopg", "psycopg2"})  # their connect arguments mean the same to psycopg


@dataclass(frozen=True, slots=True)
class Source:
    """A database as the worker's own engines reach it, always through psycopg."""

    url: sa.URL
    connect_args: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def channel(self) -> str:
        """The channel of notifications: the name of the schema."""
        translated: str | None = (self.options.get("schema_translate_map") or {}).get(SCHEMA)
        return translated or SCHEMA


def source_of(engine: sa.Engine | AsyncEngine | sa.URL | str) -> Source:
    """From an engine its URL, its connect arguments and its schema_translate_map; never its pool or isolation level."""
    if isinstance(engine, (str, sa.URL)):
        return Source(normalize(engine))
    plain = engine if isinstance(engine, sa.Engine) else engine.sync_engine
    options = plain.get_execution_options()
    kept = {name: options[name] for name in ("schema_translate_map",) if name in options}
    return Source(normalize(plain.url), _connect_args(plain), kept)


class _Captured(Exception):
    """Ends a connect before it is made."""


def _connect_args(engine: sa.Engine) -> dict[str, Any]:
    """What `create_engine(connect_args=...)` was told: read from a connect that is broken off before it begins."""
    if engine.driver not in LIBPQ_DRIVERS:
        return {}
    seen: dict[str, Any] = {}

    def capture(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> None:
        seen.update(parameters)
        raise _Captured

    event.listen(engine, "do_connect", capture)
    try:
        engine.pool.recreate().connect().close()
    except _Captured:
        pass
    finally:
        event.remove(engine, "do_connect", capture)
    _, from_url = engine.dialect.create_connect_args(engine.url)
    return {name: value for name, value in seen.items() if name not in from_url and name != "context"}
