"""An environment without greenlet, which SQLAlchemy 2.1 does not bring along: what is synchronous works there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import os
import sys

sys.modules["greenlet"] = None  # as where it is not installed: importing it fails

import sqlalchemy as sa
from sqlalchemy.orm import Session

import jobq

app = jobq.App()


@app.handler("k")
def handler(n: int) -> None: ...


with Session(sa.create_engine(os.environ["JOBQ_DATABASE_URL"])) as session:
    print(jobq.enqueue(session, handler, n=1).created)
    print(len(jobq.enqueue_many(session, handler, [handler.args(n=2)])))
    print(len(jobq.jobs(session)))
"""


@pytest.mark.parametrize("line", ["import jobq", CODE], ids=["import", "enqueue"])
def test_f53_without_greenlet_jobq_is_imported_and_jobs_are_enqueued(database_url: str, line: str) -> None:
    environment = {**os.environ, "JOBQ_DATABASE_URL": database_url}

    done = subprocess.run([sys.executable, "-c", line], env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("True\n1\n2\n" if line == CODE else "")
