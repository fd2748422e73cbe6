"""`python -m jobq`: the command line."""

from __future__ import annotations

from jobq_cli import main

main()
