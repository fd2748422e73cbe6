"""What `ps` shows of a worker and of the children that it starts."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa
from run_process import RunProcess

import jobq

APP = """
import jobq, logging, time

app = jobq.App()

@app.handler("charge", executor="process")
def charge(token: jobq.Secret[str]) -> None:
    logging.getLogger("shop").warning("begun with %s", token)
    time.sleep(60)
"""
TOKEN = "t0ken-in-args"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc here")
def test_f69_neither_password_nor_secret_is_in_the_title_of_a_worker_or_of_its_children(
    tmp_path: Path, engine: sa.Engine, database_url: str
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "pyproject.toml").touch()
    process = RunProcess(tmp_path, "shop:app", "--grace=0.1", database_url=database_url)
    try:
        with engine.begin() as connection:
            jobq.enqueue(connection, jobq.kind("charge", queue="default"), token=TOKEN)
        process.until("begun with ***")
        worker = psutil.Process(process.process.pid)
        titles = [" ".join(each.cmdline()) for each in (worker, *worker.children(recursive=True))]
    finally:
        process.close()

    assert len(titles) >= 2
    assert any("jobq.child" in title for title in titles)
    assert not [title for title in titles if str(engine.url.password) in title or TOKEN in title]
    assert TOKEN not in "".join(process.lines)
