"""One line in the log for each change of many jobs: who, what, which, how many."""

from __future__ import annotations

import getpass
import logging
import socket

from jobq_cli.logs import Level, LogForm, set_up

logger = logging.getLogger("jobq.audit")


def record(what: str, *, which: str, changed: int, matched: int) -> None:
    """`root@host retried 3 of 3 jobs: state dead, queue email`, on stderr; `what` is a verb's past."""
    set_up(LogForm.TEXT, Level.INFO)
    fields = {"who": who(), "what": what, "which": which, "changed": changed, "matched": matched}
    logger.info("%s %s %d of %d jobs: %s", fields["who"], what, changed, matched, which, extra=fields)


def who() -> str:
    """The user of the operating system; in a container there may be none by that number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
