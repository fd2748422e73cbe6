"""A3: PostgreSQL crashes, throws everybody out, is full, locked or read-only; the workers stay and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import blows
import pytest
from besieged import Besieged, besieged_in, memory_folder, small_disk
from board import Board
from lengths import length
from siege import Siege, siege_of
from tally import tally

ROUNDS = length(ci=1, chaos=2, long=100)
SECONDS = length(ci=4.5, chaos=8.0, long=20.0)
Blow = Callable[[Besieged, Board], AbstractContextManager[Any]]
AWAY = [
    blows.immediate_stop,
    blows.killed_postmaster,
    blows.no_connection_left,
    blows.read_only,
    blows.standby,
    blows.lock_timeout,
]
HINDERED = [blows.terminated_sessions, blows.statement_timeout, blows.idle_in_transaction_timeout]


@pytest.fixture(scope="module")
def server() -> Iterator[Besieged]:
    with memory_folder() as folder, besieged_in(folder) as server:
        yield server


@pytest.fixture(scope="module")
def siege(server: Besieged, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Siege]:
    """The same two processes through all that happens."""
    with siege_of(server.url, tmp_path_factory.mktemp("siege")) as siege:
        siege.begin()
        yield siege


@pytest.mark.timeout(300 * ROUNDS)
@pytest.mark.parametrize("blow", [*AWAY, *HINDERED], ids=lambda blow: blow.__name__)
def test_the_same_workers_go_on_after(server: Besieged, siege: Siege, blow: Blow) -> None:
    wrong = []
    for _ in range(ROUNDS):
        wrong += siege.besiege(blow(server, siege.board), SECONDS, is_away=blow in AWAY)

    tally(f"A3 {blow.__name__.replace('_', ' ')}", outages=ROUNDS, violations=len(wrong))
    assert wrong == []


@pytest.mark.timeout(300)
def test_the_same_workers_go_on_after_the_disk_was_full(tmp_path: Path) -> None:
    wrong = []
    with small_disk(megabytes=200) as folder, besieged_in(folder) as server, siege_of(server.url, tmp_path) as siege:
        siege.begin()
        for _ in range(ROUNDS):
            wrong += siege.besiege(blows.full_disk(server, siege.board), SECONDS, is_away=True)

    tally("A3 full disk", outages=ROUNDS, violations=len(wrong))
    assert wrong == []


@pytest.mark.parametrize("seed", ["gives_up", "hurries"])
def test_the_attack_finds_a_worker_that(seed: str, server: Besieged, tmp_path: Path) -> None:
    with siege_of(server.another(seed), tmp_path) as siege:
        siege.begin(1, seed=seed)
        wrong = siege.besiege(blows.immediate_stop(server, siege.board), 3, is_away=True)

    tally(f"A3 worker that {seed.replace('_', ' ')}", caught=int(bool(wrong)))
    assert wrong
