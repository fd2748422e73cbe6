"""Which rights on jobq's tables a database role needs for a duty, and the GRANTs that give it them. Pure.

A role that enqueues can neither claim nor read what has been enqueued: it has rights on single columns only. Whoever
has the tables (the role that migrates) has every right anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from jobq.errors import OptionError
from jobq.tables import SCHEMA, metadata
from jobq_migrations import VERSION_TABLE

LONGEST_NAME = 63  # bytes; PostgreSQL cuts a longer one without a word
FUNCTION = "enqueue(text, jsonb, text, timestamptz, integer, text)"
Rights: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]  # by table and privilege the columns; () is all of them

WHOLE: tuple[str, ...] = ()
READ = {"SELECT": WHOLE}
WRITE = {"SELECT": WHOLE, "INSERT": WHOLE, "UPDATE": WHOLE}
EVERYTHING = {**WRITE, "DELETE": WHOLE}
NEW = ("queue", "kind", "args", "priority", "run_at", "max_attempts", "unique_key", "callsite", "meta")
# What an answer to an enqueue says, and what decides whether a holder of the key may be changed.
KNOWN = (
    "id", "queue", "kind", "priority", "run_at", "unique_key", "worker_id", "attempt", "failures", "created_at",
)  # fmt: skip
CHANGED = ("args", "queue", "priority", "run_at", "max_attempts", "meta", "callsite")  # of a holder, "replace"
HANDLERS = ("kind", "queue", "priority", "max_attempts", "unique_names")  # for `jobq.enqueue` in SQL
READING: Rights = dict.fromkeys((*(table.name for table in metadata.sorted_tables), "all_jobs"), READ) | {
    VERSION_TABLE: READ
}


class Duty(StrEnum):
    """What a role is for."""

    ENQUEUE = "enqueue"
    WORK = "work"
    OPERATE = "operate"
    READ = "read"


DUTIES: Mapping[Duty, Rights] = {
    Duty.ENQUEUE: {"jobs": {"SELECT": KNOWN, "INSERT": NEW, "UPDATE": CHANGED}, "kinds": {"SELECT": HANDLERS}},
    Duty.WORK: {
        **READING,
        **dict.fromkeys(("jobs", "finished_jobs", "workers", "slots", "sums"), EVERYTHING),
        **dict.fromkeys(("queues", "kinds", "schedules", "leader"), WRITE),
    },
    Duty.OPERATE: {
        **READING,
        "jobs": {"SELECT": WHOLE, "INSERT": WHOLE, "DELETE": WHOLE},
        # To lock a row takes the right to change one of its columns: until when it is kept.
        "finished_jobs": {"SELECT": WHOLE, "INSERT": WHOLE, "UPDATE": ("expires_at",), "DELETE": WHOLE},
        "queues": WRITE,
        "slots": WRITE,
    },
    Duty.READ: READING,
}
CALLS = frozenset({Duty.ENQUEUE, Duty.WORK, Duty.OPERATE})  # the function `enqueue`


@dataclass(frozen=True, slots=True)
class Grant:
    """One GRANT. `privileges`: as SQL has them, with the columns; `on`: the quoted name of what they are on."""

    role: str
    duty: Duty
    privileges: str
    on: str

    @property
    def sql(self) -> str:
        return f"GRANT {self.privileges} ON {self.on} TO {quoted(self.role)};"


def grants(duties: Iterable[tuple[str, str]], *, schema: str = SCHEMA) -> list[Grant]:
    """What (role, duty) pairs need, in the order of the pairs. A role may have several duties.

    Raises: OptionError, for an unknown duty and for what can be no name.
    """
    _check("schema", schema)
    pairs = [(_check("role", role), checked_duty(duty)) for role, duty in duties]
    return [grant for role, duty in pairs for grant in _of(role, duty, quoted(schema))]


def checked_duty(text: str) -> Duty:
    """Raises: OptionError."""
    try:
        return Duty(text)
    except ValueError:
        raise OptionError(f"no duty {text!r}: there are {', '.join(Duty)}") from None


def quoted(name: str) -> str:
    """A name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def _of(role: str, duty: Duty, schema: str) -> Iterator[Grant]:
    yield Grant(role, duty, "USAGE", f"SCHEMA {schema}")
    for table, privileges in sorted(DUTIES[duty].items()):
        listed = ", ".join(_privilege(*each) for each in privileges.items())
        yield Grant(role, duty, listed, f"{schema}.{quoted(table)}")
    if duty in CALLS:
        yield Grant(role, duty, "EXECUTE", f"FUNCTION {schema}.{FUNCTION}")


def _privilege(name: str, columns: tuple[str, ...]) -> str:
    return f"{name} ({', '.join(map(quoted, columns))})" if columns else name


def _check(what: str, name: str) -> str:
    """What is no name, or another one once PostgreSQL has cut it; a terminal is not to obey it either."""
    size = len(name.encode(errors="replace"))
    if not 1 <= size <= LONGEST_NAME or not name.isprintable():
        raise OptionError(f"{what}: 1 to {LONGEST_NAME} bytes of printable characters, got {name[:80]!r}")
    return name
