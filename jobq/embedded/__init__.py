"""A PostgreSQL of its own for trying, developing and testing: one server a directory, shared by processes.

Every process that asks for it holds a shared lock for as long as it lives; a supervisor waits for the exclusive one.
The kernel drops the locks of a killed process too, so the supervisor always learns when nobody is left.
"""

from __future__ import annotations

from jobq.embedded.binaries import find_binaries
from jobq.embedded.home import project_directory
from jobq.embedded.server import ensure, running, stop

__all__ = ["ensure", "find_binaries", "project_directory", "running", "stop"]
