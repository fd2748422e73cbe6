"""The child's own connections: made anew from the worker's URL, never inherited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import psycopg
import sqlalchemy as sa

from jobq.child.parent import Parent
from jobq.executors.process.wire import Message
from jobq.source import Source
from jobq.worker.handler_engines import HandlerEngines


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class ChildSource(Source):
    """A URL, and what the worker says is needed besides, asked anew for each connection: a token lasts minutes."""

    ask: Callable[[], dict[str, Any]] = _nothing

    def _open(self, conninfo: str, parameters: dict[str, Any]) -> psycopg.Connection[Any]:
        return psycopg.Connection.connect(conninfo, **{**parameters, **self.ask()})

    async def _open_async(self, conninfo: str, parameters: dict[str, Any]) -> psycopg.AsyncConnection[Any]:
        asked = await anyio.to_thread.run_sync(self.ask)
        return await psycopg.AsyncConnection.connect(conninfo, **{**parameters, **asked})


def engines_of(hello: Message, parent: Parent) -> HandlerEngines:
    """Nothing is connected before a handler's first transaction; one connection is all that one job needs."""
    translated = {"schema_translate_map": dict(hello["translated"])} if hello["translated"] else {}
    source = ChildSource(
        sa.make_url(hello["url"]), None, translated, hello["pooler"], ask=lambda: dict(parent.ask("connect"))
    )
    return HandlerEngines(source, name=f"jobq {hello['name']} child", size=1)
