"""What a connection asks of the server for its session.

Keepalives, so that it sees a client that is gone without a word: it would keep the session, its transaction and its
locks for as long as the system's own take, two hours. And that no claim and no end is taken back by a crash.
"""

from __future__ import annotations

from collections.abc import Mapping

# PostgreSQL, "Connection Settings". As `urls.KEEPALIVE` on this side; not over a Unix socket, where they are ignored.
SERVER_KEEPALIVE: Mapping[str, str] = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
# Whoever has said something for this client, this role or this database knows better; the server's file is for all.
OF_ALL = ("default", "configuration file", "command line")
SET = (
    "SELECT count(set_config(name, wanted.value, false)) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)"
    " JOIN pg_catalog.pg_settings USING (name) WHERE source = ANY(%s::text[])"
)
# A crash that takes a claim back gives its attempt out again; one that takes an end back leaves a job with a worker
# that has forgotten it. 'local': on the server's own disk. Who waits for standbys goes on doing so.
DURABLE = "SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off'"


def session_settings() -> tuple[str, list[list[str]]]:
    """Columns of a query, in psycopg's form, that set them for the session, and their parameters."""
    return f"({SET}), ({DURABLE})", [list(SERVER_KEEPALIVE), list(SERVER_KEEPALIVE.values()), list(OF_ALL)]
