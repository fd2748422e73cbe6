"""Where the revisions are, and which there are."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parent
VERSION_TABLE = "schema_version"
REVISIONS = ("0001",)  # all of them, oldest first; a test compares them with the files
BASE = "base"  # before the first one, in Alembic's word
