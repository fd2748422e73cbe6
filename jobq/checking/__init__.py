"""Whether every job that a project enqueues has a handler, and args that fit it: read from sources and from rows.

Nothing is imported but the application itself; sources are parsed (DESIGN.md, What `jobq check` sees).
"""

from __future__ import annotations

from jobq.checking.calls import find_calls
from jobq.checking.files import Sources, project_of, read_sources
from jobq.checking.found import UNKNOWN, Arguments, Fault, Found
from jobq.checking.judging import Report, judge
from jobq.checking.live import named, names_of
from jobq.checking.rows import Rows, check_rows
from jobq.checking.sql import find_sql

__all__ = [
    "UNKNOWN",
    "Arguments",
    "Fault",
    "Found",
    "Report",
    "Rows",
    "Sources",
    "check_rows",
    "find_calls",
    "find_sql",
    "judge",
    "named",
    "names_of",
    "project_of",
    "read_sources",
]
