"""What a running server says of itself in its postmaster.pid, and the URLs that follow from it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jobq.embedded.home import Home

DATABASE = USER = "postgres"


@dataclass(frozen=True)
class Postmaster:
    pid: int
    port: int
    sockets: str
    address: str  # "" where it does not listen on TCP
    is_ready: bool

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(f"{self.sockets}/.s.PGSQL.{self.port}")
        except OSError:
            return False
        return True

    def socket_url(self) -> str:
        # quote, not quote_plus: libpq does not read a plus sign as a space
        return f"postgresql+psycopg://{USER}@/{DATABASE}?host={quote(self.sockets)}&port={self.port}"

    def tcp_url(self, password: str) -> str:
        return f"postgresql+psycopg://{USER}:{quote(password, safe='')}@{self.address}:{self.port}/{DATABASE}"


def read_postmaster(data: Path) -> Postmaster | None:
    """None when the server is down, or its file is not complete yet."""
    try:
        pid, _, _, port, sockets, address, _, status = (data / "postmaster.pid").read_text().splitlines()[:8]
        return Postmaster(abs(int(pid)), int(port), sockets, address, is_ready=status.strip() == "ready")
    except (OSError, ValueError):
        return None


def ready(home: Home) -> Postmaster | None:
    """The server of `home`, if it takes connections."""
    found = read_postmaster(home.data)
    return found if found and found.is_ready and found.answers() else None


def url_of(home: Home, found: Postmaster, *, tcp: bool) -> str:
    return found.tcp_url(home.password.read_text().strip()) if tcp else found.socket_url()
