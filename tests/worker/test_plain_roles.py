"""The role of an application: it owns jobq's schema alone, has no search_path and a password full of signs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from bench import Bench

import jobq
from jobq.model import State
from jobq_cli.app import run

pytestmark = pytest.mark.anyio
IN_PUBLIC = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"


@pytest.fixture(params=["", "public"], ids=["no search_path", "search_path=public"])
def bench(request: pytest.FixtureRequest, empty_database_url: str) -> Iterator[Bench]:
    """An empty database, as the role sees it."""
    url = sa.make_url(empty_database_url)
    name = f"role_{url.database}"
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'p@ss%%/25'")
        connection.exec_driver_sql(f"GRANT CREATE ON DATABASE {url.database} TO {name}")
        connection.exec_driver_sql(f"ALTER ROLE {name} SET search_path = '{request.param}'")
    text = url.set(username=name, password="p@ss%/25").render_as_string(hide_password=False)
    engine = sa.create_engine(text)
    yield Bench(text, engine)
    engine.dispose()
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


async def test_f59_f61_such_a_role_migrates_enqueues_works_and_rescues(bench: Bench, app: jobq.App) -> None:
    app.handler("quick")(lambda: None)
    jobq.migrate(bench.url)
    lost = bench.add_worker(7, timedelta(seconds=1), ran_out=timedelta(hours=1))
    rescued = bench.add("quick", worker_id=lost, attempt=1)

    async with bench.working(app, lease=timedelta(seconds=1)):
        ended = [await bench.until(each) for each in (bench.enqueue(app.handlers["quick"]), rescued)]

    assert "p%40ss%25%2F25" in bench.url
    assert [(job.state, job.failures) for job in ended] == [(State.DONE, 0), (State.DONE, 1)]
    assert bench.execute(IN_PUBLIC) == []


@pytest.mark.parametrize("by", ["option", "variable"])
def test_f59_f61_such_a_role_has_every_command(
    bench: Bench, app: jobq.App, by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*words: object) -> int:
        option = ["--database-url", bench.url] if by == "option" else []
        return run([str(each) for each in words] + option)

    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("JOBQ_DATABASE_URL", raising=False)
    if by == "variable":
        monkeypatch.setenv("DATABASE_URL", bench.url.replace("postgresql+psycopg", "postgres"))
    handler = app.handler("quick")(lambda: None)
    migrated = call("migrate")
    job = bench.enqueue(handler)
    codes = [
        call(*words) for words in (["stats"], ["list"], ["show", job], ["cancel", job], ["retry", job], ["workers"])
    ]

    assert (migrated, codes) == (0, [0] * 6), capsys.readouterr().err
    assert bench.job(job).state is State.PENDING
    assert bench.execute(IN_PUBLIC) == []
