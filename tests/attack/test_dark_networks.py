"""A4: a network that swallows every packet, without a RST, a FIN or an acknowledgement: the kernel ends the calls."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from fleet import Member
from holes import needs_linux
from lengths import length
from network import Network, network_to
from siege import Siege, siege_of
from tally import tally
from waits import waiting

from jobq import schema, urls
from jobq_cli.connect import Target, engine_for

ROUNDS = length(ci=1, chaos=2, long=50)
DARK_SECONDS = 26.0  # within a lease, so that no job is given up
LONGEST_SECONDS = 23.0  # of a call: the kernel ends it after 20. The faulty worker sends its first within 2 s
OWN_LIMITS = {"tcp_user_timeout": "2000", "keepalives_idle": "1", "keepalives_interval": "1"}
pytestmark = [needs_linux, pytest.mark.timeout(200 * ROUNDS)]


@pytest.fixture
def network(database_url: str) -> Iterator[Network]:
    with network_to(database_url) as network:
        yield network


@pytest.fixture
def siege(database_url: str, network: Network, tmp_path: Path) -> Iterator[Siege]:
    with siege_of(database_url, tmp_path, by_way_of=network.url) as siege:
        yield siege


def test_no_call_of_a_worker_hangs_longer_than_thirty_seconds(siege: Siege, network: Network) -> None:
    siege.begin(1, seed="waits_for_ever", queues="elsewhere")
    [faulty] = siege.workers
    siege.begin(2)
    wrong: list[str] = []
    caught: list[str] = []
    for n in range(ROUNDS):
        watched = [*siege.workers, faulty] if n == 0 else siege.workers
        hanging: dict[int, list[str]] = {}
        wrong += siege.besiege(darkness(network, watched, hanging), DARK_SECONDS, is_away=True, resumes_within=8)
        wrong += [each for worker in siege.workers for each in hanging[worker.pid]]
        caught += hanging.get(faulty.pid, [])

    tally("A4 darkness", outages=ROUNDS, violations=len(wrong), caught=int(bool(caught)))
    assert wrong == []
    assert caught


@contextmanager
def darkness(network: Network, workers: list[Member], hanging: dict[int, list[str]]) -> Iterator[None]:
    """`hanging`: of each worker the connections of the time before that it has waited for too long, and still does.

    A call waits since it was sent: the services of a worker send theirs seconds after the last packet has arrived.
    """
    port = sa.make_url(network.url).port or 0
    before = {worker.pid: ports_to(port, worker.pid) for worker in workers}
    network.go_dark()
    with waiting(port, set().union(*before.values())) as waits:
        yield
        still = waits.still(LONGEST_SECONDS)
    for pid, ports in before.items():
        hanging[pid] = [f"worker {pid} waits at port {each} for {waits.seconds[each]:.1f} s" for each in ports & still]
    network.light_up()


def ports_to(port: int, pid: int) -> set[int]:
    """Its own ports of its connections to this one."""
    found = [each for each in psutil.Process(pid).net_connections("tcp") if each.status == "ESTABLISHED"]
    to_this = [each for each in found if each.raddr.port == port]
    assert all(each.family is socket.AF_INET for each in to_this), "the table that is looked at is of IPv4"
    return {each.laddr.port for each in to_this}


def test_limits_that_the_url_has_are_those_that_count(database_url: str) -> None:
    with network_to(database_url) as network:
        url = sa.make_url(network.url).update_query_dict(OWN_LIMITS)
        engine = engine_for(Target(url, "test"))
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            network.go_dark()
            began = time.monotonic()
            with pytest.raises(sa.exc.OperationalError):
                connection.exec_driver_sql("SELECT 1")
            took = time.monotonic() - began
            connection.invalidate()

    assert took < urls.KEEPALIVE["tcp_user_timeout"] / 1000 / 2


def test_a_command_and_a_migration_have_the_same_limits(database_url: str) -> None:
    """They do not hang either."""
    with network_to(database_url) as network:
        with engine_for(Target(sa.make_url(network.url), "test")).connect() as connection:
            of_command = limits_of(connection)
        with schema._connection(network.url) as connection:
            of_migration = limits_of(connection)

    assert of_command == of_migration == {name: str(value) for name, value in urls.KEEPALIVE.items()}


def limits_of(connection: sa.Connection) -> dict[str, str]:
    """As libpq has taken them."""
    pgconn = connection.connection.driver_connection.pgconn  # type: ignore[union-attr]
    given = {each.keyword.decode(): each.val for each in pgconn.info}
    return {name: given[name].decode() for name in urls.KEEPALIVE if given[name]}
