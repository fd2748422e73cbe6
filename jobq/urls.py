"""Database URLs in any form found in the wild, turned into the one that jobq connects with.

No text made here, of an error or of a log line, holds a password.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from jobq.errors import OptionError

logger = logging.getLogger("jobq")

VARIABLES = ("JOBQ_DATABASE_URL", "DATABASE_URL")
DRIVER = "postgresql+psycopg"
FORM = "write it as postgresql://user:password@host:port/database"

SECRET_OPTIONS = ("password", "sslpassword", "scram_client_key", "scram_server_key")

# `ssl` is asyncpg's name for sslmode, and what Node's drivers write. To drop it would be to go on unencrypted.
SSL_MODES = {"true": "require", "1": "require", "no-verify": "require", "false": "disable", "0": "disable"}

Option = str | tuple[str, ...]
# What a connection has to tell the kernel so that a cut cable is seen: libpq, "Parameter Key Words". None hangs longer
# than 20 s over a network that swallows packets, 25 s where nothing was under way.
KEEPALIVE: Mapping[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 10,  # libpq takes 4 round trips, with TLS 5: two seconds each are slow, and no outage
}


def normalize(url: str | sa.URL) -> sa.URL:
    """The same database, role and options for psycopg; options that only other drivers know are dropped with a word.

    Raises: OptionError, when it is not the URL of a PostgreSQL database.
    """
    parsed = _parse(url.strip()) if isinstance(url, str) else url
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise OptionError(f"the database URL names {parsed.get_backend_name()!r}, jobq needs PostgreSQL: {FORM}")
    return parsed.set(drivername=DRIVER, query=_known(_translated(parsed.query)))


def patient(url: sa.URL, name: str) -> dict[str, Any]:
    """Keepalives, and a name for pg_stat_activity, under the options that the URL has: for `connect_args`."""
    return {**KEEPALIVE, "application_name": name[:63], **dict(url.query)}


def safe(url: str | sa.URL) -> str:
    """The URL as text for messages: *** in place of the password, and no option that is a secret."""
    try:
        parsed = normalize(url) if isinstance(url, str) else url
    except OptionError:
        return "(malformed database URL)"
    return parsed.difference_update_query(SECRET_OPTIONS).render_as_string(hide_password=True)


def from_environment(environment: Mapping[str, str] = os.environ) -> sa.URL | None:
    """The URL in JOBQ_DATABASE_URL, else in DATABASE_URL; None when both are missing or empty.

    Raises: OptionError, when it is malformed; the text names the variable.
    """
    for variable in VARIABLES:
        if text := environment.get(variable, "").strip():
            try:
                return normalize(text)
            except OptionError as error:
                raise OptionError(f"{variable}: {error}") from error
    return None


def _parse(text: str) -> sa.URL:
    scheme, separator, rest = text.partition("://")
    if not separator or not re.fullmatch(r"\w[\w+.-]*", scheme):
        raise OptionError(f"the database URL is not a URL: {FORM}")
    try:
        parsed = sa.make_url(f"{scheme.replace('postgres+', 'postgresql+')}://{rest}")
    except (ArgumentError, ValueError):  # their texts quote what may be a part of the password
        raise _malformed() from None
    if _is_ambiguous(rest, parsed) or not 0 < (parsed.port or 5432) < 65536:
        raise _malformed()
    return parsed


def _is_ambiguous(rest: str, parsed: sa.URL) -> bool:
    """An unescaped @ in the password moves a part of it into the host, the database or an option."""
    return "@" in f"{parsed.host}{parsed.database}" or rest.partition("=")[0].count("@") > 1


def _malformed() -> OptionError:
    return OptionError(
        "the database URL is malformed: the port has to be a number, and in user and password"
        f" @ : / ? # % are written %40 %3A %2F %3F %23 %25; {FORM}"
    )


def _translated(query: Mapping[str, Option]) -> dict[str, Option]:
    """Options of other drivers that decide where to and how the connection goes, in libpq's words."""
    options = dict(query)
    if isinstance(mode := options.pop("ssl", None), str):
        options.setdefault("sslmode", mode)
    if isinstance(mode := options.get("sslmode"), str):
        options["sslmode"] = SSL_MODES.get(mode.lower(), mode)
    if isinstance(path := options.pop("unix_sock", None), str):  # pg8000: the socket's file, .../.s.PGSQL.5432
        directory, name = posixpath.split(path)
        options |= {"host": directory, "port": name.rpartition(".")[2]}
    return options


def _known(options: dict[str, Option]) -> dict[str, Option]:
    known = _libpq_options()
    if dropped := sorted(options.keys() - known):
        logger.warning("ignored options of the database URL that psycopg does not know: %s", ", ".join(dropped))
    return {name: value for name, value in options.items() if name in known}


@cache
def _libpq_options() -> frozenset[str]:
    """What the libpq that psycopg uses here takes as connection options; psycopg's own would come as strings."""
    from psycopg.pq import Conninfo

    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults())
