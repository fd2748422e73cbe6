"""Attacker 11: nothing grows while workers work on and on; what leaks beside them is seen by the same judgement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board import Board
from fleet import Fleet, fleet_on, until
from lengths import length
from named import named, of_the_tables
from places import FAST, Server
from soak import Producer, measured, sampled
from soak_app import LEAKY
from soak_judge import MIB, growing
from tally import tally

import jobq

HERE = Path(__file__).parent
SECONDS = length(ci=60, chaos=120, long=2 * 3600)
KEEP_SECONDS = length(ci=10, chaos=30, long=30)
INTERVAL = length(ci=0.5, chaos=1.0, long=20.0)
WARM_UP = length(ci=30, chaos=70, long=600)
COMPRESSED = length(ci="1", chaos="1", long="")
SETTINGS = {**FAST, "autovacuum_naptime": "1s"}
TABLES = "CREATE TABLE {0} (jobs int NOT NULL); INSERT INTO {0} VALUES (0)"
OPEN = "SELECT count(*) FROM jobq.jobs WHERE queue <> 'leaky' AND kind <> 'soak.tick'"
GROWS = {"leaky: memory", "leaky: threads", "leaky: descriptors", "leaky: connections"}
TICKS = "SELECT enqueued + skipped + missed FROM jobq.schedules"


@pytest.fixture
def soaked(own_directory: Path) -> Iterator[Board]:
    server = Server(own_directory, SETTINGS)
    server.start()
    jobq.migrate(server.url)
    board = Board(server.url)
    board.prepare()
    for table in ("asked", "written"):
        board.rows(TABLES.format(table))
    yield board
    board.engine.dispose()


@pytest.fixture
def workers(soaked: Board, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_on(soaked.url, tmp_path) as fleet:
        yield fleet


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc on this system")
@pytest.mark.timeout(SECONDS + 120)
def test_nothing_grows_but_what_leaks(soaked: Board, workers: Fleet) -> None:
    env = {
        "PYTHONPATH": str(HERE),
        "SOAK_KEEP": str(KEEP_SECONDS),
        "SOAK_COMPRESSED": COMPRESSED,
        "SOAK_LEAK_EVERY": str(SECONDS / 40),
    }
    began = time.monotonic()
    common = {"app": "soak_app:app", "env": env, "lease": 2, "is_ready": False}
    members = {
        "one": workers.start(queues="default", threads=4, **common),
        "two": workers.start(queues="default", threads=4, **common),
        "leaky": workers.start(queues=LEAKY, **common),
    }
    for member in members.values():
        member.until_said("is at work as")

    producer = Producer(soaked.engine, warm_up=WARM_UP)
    with producer.at_work():
        samples = list(sampled(SECONDS, INTERVAL, lambda: measured(soaked, members)))
    assert producer.error is None
    until(lambda: soaked.one(OPEN) == 0, "the end of all jobs", also=members["one"])

    grown = growing(samples, warm_up=WARM_UP)
    first, last = samples[0].values, samples[-1].values
    for name, much in grown.items():
        print(f"{name}: {first[name]:.0f} to {last[name]:.0f}, grown by {much:.0f}")
    found = [*named(soaked, of_the_tables), *(grown.keys() - GROWS)]
    more = {f"{name}_mib": round(samples[-1].values[f"{name}: memory"] / MIB) for name in ("one", "two")}
    counts = {"seconds": SECONDS, "jobs": producer.enqueued, **more}
    tally("A11 soak", guarantees="G1 G10", violations=len(found), **counts)
    tally("A11 leaks beside the soak", guarantees="", caught=len(GROWS & grown.keys()))
    assert found == []
    assert grown.keys() == GROWS
    assert soaked.one("SELECT jobs FROM written") == soaked.one("SELECT jobs FROM asked")
    assert soaked.one("SELECT count(*) FROM jobq.finished_jobs WHERE state <> 'done'") == 0
    assert SECONDS - 5 <= soaked.one(TICKS) <= time.monotonic() - began + 2
