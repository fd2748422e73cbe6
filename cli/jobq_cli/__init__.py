"""The command line of jobq: commands parse, call one function of jobq, and print."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """The entry point `jobq`."""
    from jobq_cli.leaving import leaving, prepare
    from jobq_cli.signals import exit_code, take_sigterm

    prepare()
    take_sigterm()
    try:
        from jobq_cli.app import run

        leaving.code = run(sys.argv[1:])
        sys.exit(leaving.code)
    except KeyboardInterrupt as stop:  # while the commands are imported: `run` sees to it later
        sys.exit(exit_code(stop))
