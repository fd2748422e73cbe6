"""A job goes on where a killed worker had it, and a cancel reaches the worker's process at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import page_apps
from board import Board
from fleet import Fleet, until

import jobq
from jobq import State
from jobq.model import Progress


def test_a_job_goes_on_from_its_checkpoint_after_its_worker_was_killed(
    board: Board, fleet: Fleet, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    first = fleet.start(app="page_apps:app", lease=2)
    id_ = board.enqueue(page_apps.copies, str(pages))
    until(lambda: board.job(id_).checkpoint == {"page": 3}, "the checkpoint", also=first)
    assert board.job(id_).progress == Progress(0.5, "page 3 of 6", 1)

    first.kill()
    second = fleet.start(app="page_apps:app", lease=2)
    job = jobq.wait_for(board.url, id_, timeout=timedelta(seconds=30))

    assert (job.state, job.failures, job.result) == (State.DONE, 1, {"pages": 6})
    assert pages.read_text().split() == ["1", "2", "3", "4", "5", "6"]
    assert second.is_alive


def test_a_cancelled_job_is_stopped_long_before_a_heartbeat(board: Board, fleet: Fleet, tmp_path: Path) -> None:
    worker = fleet.start(app="page_apps:app", lease=3600)
    id_ = board.enqueue(page_apps.copies, str(tmp_path / "pages"))
    until(lambda: board.job(id_).checkpoint == {"page": 3}, "the checkpoint", also=worker)

    with board.engine.begin() as connection:
        jobq.cancel(connection, id_, running=True)

    worker.until_said(f"job {id_} (copies): cancelled by hand while attempt 1 ran")
    job = board.job(id_)
    assert (job.state, job.checkpoint, job.progress) == (State.CANCELLED, {"page": 3}, Progress(0.5, "page 3 of 6", 1))
