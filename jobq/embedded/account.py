"""Who runs the server: the caller, or another account when the caller is root, whom PostgreSQL refuses."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from jobq.errors import EmbeddedError

ACCOUNTS = ("postgres", "nobody")  # those that root lends the server to, in this order


class RunAs(TypedDict, total=False):
    """Arguments of `subprocess` that make a child run as the account."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def run_as(self) -> RunAs:
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_reach(self, path: Path) -> bool:
        """Whether the account can enter every directory above `path` that exists, going by the mode bits."""
        parents = Path(os.path.realpath(path)).parents
        return all(self._may(parent, stat.S_IXOTH) for parent in parents if parent.exists())

    def can_run(self, program: Path) -> bool:
        return self.can_reach(program) and self._may(program, stat.S_IROTH | stat.S_IXOTH)

    def _may(self, path: Path, others_bits: int) -> bool:
        status = path.stat()
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0
        wanted = others_bits << shift
        return status.st_mode & wanted == wanted


def server_account() -> Account | None:
    """The account that runs the server, None where that is the caller."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedError(
        f"root cannot run PostgreSQL, and no account {' or '.join(ACCOUNTS)} is here to run it;"
        " add one (useradd --system postgres) or set JOBQ_DATABASE_URL"
    )
