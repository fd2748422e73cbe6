"""The revisions of jobq's schema, and the Alembic environment that runs them.

The revision that a database has reached stands in `schema_version` inside jobq's own schema, so that an application's
`alembic_version` is neither read nor written.
"""

from __future__ import annotations

from pathlib import Path

VERSION_TABLE = "schema_version"
DIRECTORY = Path(__file__).parent
