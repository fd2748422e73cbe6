"""What the README says of several workers: their connections, their names, deploys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from documents import section
from production_shop import APP, NEWER, enqueued, seen
from running import AT_WORK, running
from sqlalchemy.orm import Session

import jobq

pytestmark = pytest.mark.slow


def test_a_worker_has_no_more_connections_than_the_text_says(
    folder: Path, session: Session, engine: sa.Engine, database_url: str
) -> None:
    said = section("README.md", "Several workers, on several hosts")
    own = int(re.findall(r"uses up to (\d+)", said)[0])
    line = "jobq run shop.jobs:app --grace 0.1 --concurrency 3 --name"

    with running(f"{line} one", folder, database_url) as one, running(f"{line} two", folder, database_url) as two:
        for worker in (one, two):
            assert f"needs {own} connections, and up to 3 more" in worker.until("needs")
            worker.until(AT_WORK)
        for _ in range(6):
            enqueued(session, "inside")
        for worker in (one, two, one, two, one, two):
            worker.until("begun")
        used = connections(engine)
        assert [one.stop(), two.stop()] == [0, 0]

    for name in ("one", "two"):
        assert 0 < used[f"jobq {name}"] + used[f"jobq {name} heartbeat"] <= own
        assert used[f"jobq {name} handlers"] == 3


def connections(engine: sa.Engine) -> dict[str, int]:
    """How many there are by the name that they give the server."""
    asked = "SELECT application_name, count(*) AS connections FROM pg_stat_activity WHERE datname = current_database()"
    with engine.connect() as connection:
        return {row.application_name: row.connections for row in connection.execute(sa.text(f"{asked} GROUP BY 1"))}


def test_workers_of_one_name_and_host_are_two(folder: Path, session: Session, database_url: str) -> None:
    line = "jobq run shop.jobs:app --name same"

    with running(line, folder, database_url) as one, running(line, folder, database_url) as two:
        for worker in (one, two):
            worker.until(AT_WORK)
        found = jobq.workers(session)
        assert [one.stop(), two.stop()] == [0, 0]

    assert [row.name for row in found] == ["same", "same"]
    assert len({row.id for row in found}) == 2


def test_a_rolling_deploy_loses_no_job(folder: Path, session: Session, database_url: str) -> None:
    """A kind that only the newer code knows waits for it; args that do not fit stay, and run once they do."""
    new_kind = enqueued(session, "report")
    with running("jobq run shop.jobs:app", folder, database_url) as older:
        misfit = enqueued(session, "greeting", name="ada", title="Lady")
        older.until(f"default greeting {misfit}")
        assert older.stop() == 0
    assert seen(session, new_kind).state is jobq.State.PENDING
    assert jobq.stats(session).unknown_kinds == {"report": 1}
    assert (seen(session, misfit).state, seen(session, misfit).failures) == (jobq.State.DEAD, 1)

    newer = APP.replace("greeting(name: str)", 'greeting(name: str, title: str = "Ms")') + NEWER
    (folder / "shop/jobs.py").write_text(newer)
    jobq.retry(session, misfit)
    session.commit()
    with running("jobq run shop.jobs:app", folder, database_url) as worker:
        worker.until("attempt")
        worker.until("attempt")
        assert worker.stop() == 0

    assert {seen(session, job_id).state for job_id in (new_kind, misfit)} == {jobq.State.DONE}
