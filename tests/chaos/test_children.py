"""What becomes of child processes when their worker is killed, or is process 1 of a container."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import child_apps
import psutil
import pytest
from board import Board
from fleet import HERE, Fleet, until

from jobq import State

NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL")
SLOTS = 3


def can_have_namespaces() -> bool:
    """As root on Linux."""
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_no_child_outlives_a_worker_that_is_killed(board: Board, fleet: Fleet, tmp_path: Path) -> None:
    marks = {how: tmp_path / how for how in ("sleeps", "loops", "holds_the_lock")}
    worker = fleet.start(app="child_apps:app", processes=SLOTS + 1)
    board.enqueue(child_apps.good)
    for how, mark in marks.items():
        board.enqueue(child_apps.holds, str(mark), how)
    until(lambda: all(mark.exists() for mark in marks.values()), "three busy children", also=worker)
    children = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
    assert {int(mark.read_text()) for mark in marks.values()} <= set(children)

    worker.kill()

    until(lambda: all(map(is_gone, children)), "the end of all children")


@contextmanager
def first_process(url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`jobq run` as process 1 of its own namespace; the process that is waited for is `unshare`."""
    command = [*NAMESPACE, sys.executable, "-m", "jobq", "run", "child_apps:app", "--processes", "2"]
    with log.open("wb") as file, subprocess.Popen([*command, "--database-url", url], cwd=HERE, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(not can_have_namespaces(), reason="needs root on Linux")
def test_f32_as_process_1_it_ends_at_sigterm_and_no_zombie_is_left(board: Board, tmp_path: Path) -> None:
    ids = [board.enqueue(child_apps.good) for _ in range(14)]
    bad = [board.enqueue(kind) for kind in (child_apps.dies, child_apps.leaves) for _ in range(3)]

    with first_process(board.url, tmp_path / "log") as outer:
        until(lambda: all(board.job(id_).state in (State.DONE, State.DEAD) for id_ in ids + bad), "all ends", within=60)
        (worker,) = psutil.Process(outer.pid).children()
        until(lambda: not zombies(worker), "the last one to be reaped")
        assert len(worker.children(recursive=True)) <= 2
        worker.send_signal(signal.SIGTERM)
        assert outer.wait(20) == 0

    assert {board.job(id_).state for id_ in ids} == {State.DONE}
    assert [board.job(id_).errors[0].error for id_ in bad] == ["jobq.errors.ChildDiedError"] * 3 + ["TimeoutError"] * 3


def zombies(worker: psutil.Process) -> list[psutil.Process]:
    return [child for child in worker.children(recursive=True) if child.status() == psutil.STATUS_ZOMBIE]
