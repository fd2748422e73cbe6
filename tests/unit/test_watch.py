"""Looking again and again, and what ends it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobq_cli.watch import again


class Came(Exception):
    """The signal."""


@pytest.fixture
def late_signal() -> Iterator[threading.Event]:
    """Once it is set a signal comes that wakes no call of this thread, as one that came right before would not."""

    def come(*_: object) -> None:
        raise Came

    wanted = threading.Event()

    def send() -> None:
        wanted.wait()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, come)
    thread = threading.Thread(target=send)
    thread.start()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    yield wanted
    wanted.set()
    thread.join()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_comes_right_before_a_wait_ends_it(late_signal: threading.Event) -> None:
    began = time.monotonic()

    with sa.create_engine("sqlite://").connect() as connection:
        late_signal.set()
        with pytest.raises(Came):
            list(again(connection, timedelta(seconds=20)))

    assert time.monotonic() - began < 10
