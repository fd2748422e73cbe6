"""A4: what lies between worker and server cuts, delays, drips, forgets, and loses the answers to COMMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import pytest
from board import Board
from fleet import wait_out
from lengths import length
from lines import Fate
from network import Network, network_to
from siege import Siege, siege_of
from siege_app import entry
from tally import tally

ROUNDS = length(ci=1, chaos=2, long=100)
SECONDS = length(ci=4.0, chaos=10.0, long=20.0)
COMMITS = length(ci=40, chaos=200, long=5_000)
COMMIT = b"COMMIT\x00"  # in a request the statement, in a reply the tag of what has happened
LEASE = 4
Weather = Callable[[Network], AbstractContextManager[object]]


@contextmanager
def cuts(network: Network) -> Iterator[None]:
    assert network.cut()
    yield
    network.cut()


@contextmanager
def many_cuts(network: Network) -> Iterator[None]:
    """One after the other: some meet a statement on its way, or a connection that is being made."""
    for _ in range(40):
        network.cut()
        wait_out(0.1)
    yield


def two_seconds_of_latency(network: Network) -> AbstractContextManager[None]:
    return network.weathered(latency_seconds=1.0)  # each way


def slow_drip(network: Network) -> AbstractContextManager[None]:
    return network.weathered(drip=24)


@contextmanager
def connections_made_over_two_seconds(network: Network) -> Iterator[None]:
    with two_seconds_of_latency(network):
        network.cut()
        yield


@pytest.fixture
def network(database_url: str) -> Iterator[Network]:
    with network_to(database_url) as network:
        yield network


@pytest.fixture
def siege(database_url: str, network: Network, tmp_path: Path) -> Iterator[Siege]:
    with siege_of(database_url, tmp_path, by_way_of=network.url) as siege:
        yield siege


SLOW_CONNECTIONS = [connections_made_over_two_seconds]
WEATHERS = [cuts, two_seconds_of_latency, slow_drip, *length(ci=[], chaos=SLOW_CONNECTIONS, long=SLOW_CONNECTIONS)]


@pytest.mark.timeout(300 * ROUNDS)
def test_the_same_workers_go_on_in_any_weather(siege: Siege, network: Network) -> None:
    siege.begin()
    wrong: dict[str, list[str]] = {}
    for weather in WEATHERS * ROUNDS:
        wrong.setdefault(weather.__name__, []).extend(siege.besiege(weather(network), SECONDS))

    for name, each in wrong.items():
        tally(f"A4 {name.replace('_', ' ')}", spells=ROUNDS, violations=len(each))
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize(
    ("seed", "weather"),
    [("gives_up", many_cuts), ("is_impatient", two_seconds_of_latency), ("is_impatient", slow_drip)],
)
def test_the_weather_finds_a_worker_that(seed: str, weather: Weather, siege: Siege, network: Network) -> None:
    siege.begin(1, seed=seed)
    wrong = siege.besiege(weather(network), 4)

    tally(f"A4 {weather.__name__.replace('_', ' ')}, a worker that {seed.replace('_', ' ')}", caught=int(bool(wrong)))
    assert wrong


@pytest.mark.timeout(120 * ROUNDS)
def test_a_connection_without_a_server_behind_it_costs_no_lease(siege: Siege, network: Network) -> None:
    siege.begin(1, lease=LEASE)
    [worker] = siege.workers
    siege.begin(1, lease=LEASE, seed="beats_without_limit", queues="elsewhere")
    [faulty] = siege.workers
    siege.workers = [worker]
    wrong: list[str] = []
    for _ in range(ROUNDS):
        wrong += siege.besiege(half_open(network), SECONDS, resumes_within=20)
    lost, caught = worker.stats()["leases_lost"], faulty.stats()["leases_lost"]

    tally("A4 half-open connections", outages=ROUNDS, violations=len(wrong) + lost, caught=int(bool(caught)))
    assert (wrong, lost) == ([], 0)
    assert caught


@contextmanager
def half_open(network: Network) -> Iterator[None]:
    assert network.leave_half_open()
    yield


@pytest.mark.parametrize("seed", ["", "takes_as_done"])
def test_a_commit_whose_answer_was_lost_is_settled_by_reading(siege: Siege, network: Network, seed: str) -> None:
    siege.begin(1, seed=seed)
    requests, replies = Lossy(3), Lossy(3)

    with network.weathered(on_request=requests.decide, on_reply=replies.decide):
        jobs = siege.board.enqueue_many(entry, [{}] * COMMITS)
        wrong = wrong_entries(siege.board, jobs, within=6 if seed else 60)

    lost = {"commits_cut_before": requests.lost, "commits_cut_after": replies.lost}
    what = f"A4 cut COMMITs{' taken as done' if seed else ''}"
    tally(what, guarantees="G1 G13", **lost, **outcome(wrong, seed))
    assert min(lost.values()) > 0
    assert bool(wrong) is bool(seed), wrong


def outcome(wrong: list[str], seed: str) -> dict[str, int]:
    return {"caught": int(bool(wrong))} if seed else {"violations": len(wrong)}


class Lossy:
    """Loses each so many-th COMMIT."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._seen = count(1)
        self.lost = 0

    def decide(self, data: bytes) -> Fate:
        if COMMIT not in data or next(self._seen) % self._each:
            return Fate.PASS
        self.lost += 1
        return Fate.CUT


def wrong_entries(board: Board, jobs: list[int], within: float) -> list[str]:
    """Each has to stand once in the book, by the attempt that ended the job: none ran after its COMMIT."""
    try:
        board.until_ended(jobs, within=within)
    except AssertionError as error:
        return [str(error)]
    stand = board.rows(
        "SELECT id, count(books.job_id) AS times, max(books.attempt) = max(ended.attempt) AS is_last"
        " FROM jobq.finished_jobs ended LEFT JOIN books ON job_id = id WHERE id = ANY(:ids) GROUP BY id",
        ids=jobs,
    )
    return [f"entry {row.id}: {row.times} times" for row in stand if (row.times, row.is_last) != (1, True)]
