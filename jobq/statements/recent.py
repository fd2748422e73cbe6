"""The last job of a kind with these args that ended so, by the index for it."""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa

from jobq.statements.admin import AS_TEXT
from jobq.statements.binds import ZERO, json_param, param, seconds
from jobq.statements.outcome import word_of
from jobq.tables import all_jobs, finished_jobs, kinds


@cache
def recent() -> sa.Executable:
    """Binds: kind, args (JSON text), within (seconds), word (NULL: any).

    Found by the digest of kind and args that the index has, then compared; cancelled jobs did not run.
    """
    ended = finished_jobs.c
    columns = [sa.cast(ended[name], sa.Text).label(name) if name in AS_TEXT else ended[name] for name in _names()]
    word = param("word", sa.Text)
    return (
        sa.select(*columns)
        .where(
            ended.kind == param("kind", sa.Text),
            _digest(ended.kind, ended.args) == _digest(param("kind", sa.Text), json_param("args")),
            ended.args == json_param("args"),
            ended.finished_at > sa.func.now() - seconds("within"),
            ended.state != sa.literal_column("'cancelled'", sa.Text),
            sa.or_(word.is_(None), word_of(ended.outcome) == word),
        )
        .order_by(ended.finished_at.desc())
        .limit(sa.literal_column("1"))
    )


@cache
def keep_of_kind() -> sa.Executable:
    """For how long its handler keeps done jobs of a kind, as a worker published it. Bind: kind."""
    return sa.select(kinds.c.keep).where(kinds.c.kind == param("kind", sa.Text))


def _digest(kind: Any, args: Any) -> sa.ColumnElement[int]:
    seed = sa.func.hashtextextended(kind, ZERO, type_=sa.BigInteger)
    return sa.func.jsonb_hash_extended(args, seed, type_=sa.BigInteger)


def _names() -> list[str]:
    return [column.name for column in all_jobs.c]
