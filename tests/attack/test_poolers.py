"""A5: a fleet behind a PgBouncer in transaction mode, when that ends, or the server behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import blows
import pytest
import sqlalchemy as sa
from besieged import Besieged, besieged_in, memory_folder
from board import Board
from bouncer import binary, bouncer, through
from lengths import length
from siege import Siege, siege_of
from tally import tally

ROUNDS = length(ci=1, chaos=2, long=100)
SECONDS = length(ci=3.0, chaos=8.0, long=20.0)
pytestmark = pytest.mark.skipif(binary() is None, reason="PgBouncer is not installed here (apt-get install pgbouncer)")


class Pooler:
    """Two connections to the server for all; it comes back at the same port."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self._server = parsed.set(host=str(parsed.query["host"]), port=int(str(parsed.query["port"])))
        self._life = ExitStack()
        self.port = self._life.enter_context(bouncer(self._server))
        self.url = through(self._server.set(host="127.0.0.1", query={}).render_as_string(), self.port)

    @contextmanager
    def away(self, _: Besieged, board: Board) -> Iterator[None]:
        self.end()
        yield
        self._life.enter_context(bouncer(self._server, port=self.port))

    def end(self) -> None:
        self._life.close()


@pytest.fixture
def server() -> Iterator[Besieged]:
    with memory_folder() as folder, besieged_in(folder) as server:
        yield server


@pytest.fixture
def pooler(server: Besieged) -> Iterator[Pooler]:
    pooler = Pooler(server.url)
    yield pooler
    pooler.end()


@pytest.fixture
def siege(server: Besieged, pooler: Pooler, tmp_path: Path) -> Iterator[Siege]:
    with siege_of(server.url, tmp_path, by_way_of=pooler.url) as siege:
        yield siege


@pytest.mark.timeout(300 * ROUNDS)
def test_the_same_workers_go_on_behind_a_pooler(server: Besieged, pooler: Pooler, siege: Siege) -> None:
    siege.begin(pooler=True)
    wrong: dict[str, list[str]] = {}
    for blow in [pooler.away, blows.immediate_stop, blows.terminated_sessions] * ROUNDS:
        wrong.setdefault(blow.__name__, []).extend(siege.besiege(blow(server, siege.board), SECONDS))

    for name, each in wrong.items():
        tally(f"A5 pooler, {name.replace('_', ' ')}", outages=ROUNDS, violations=len(each))
    assert not any(wrong.values()), wrong
    assert all(worker.count("nothing can be listened for") == 1 for worker in siege.workers)


def test_the_attack_finds_a_worker_that_gives_up(server: Besieged, pooler: Pooler, siege: Siege) -> None:
    siege.begin(1, seed="gives_up", pooler=True)
    wrong = siege.besiege(pooler.away(server, siege.board), 3)

    tally("A5 pooler, a worker that gives up", caught=int(bool(wrong)))
    assert wrong
