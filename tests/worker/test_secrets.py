"""Canaries: values of secret arguments are looked for in everything that a worker writes, sends and shows."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import secret_app
import sentry_sdk
import sqlalchemy as sa
from bench import Bench
from canary_commands import LOOKING, lines
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, generate_latest
from secret_app import CANARY, NUMBER, app, forms
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

import jobq
from jobq import outgoing
from jobq.metrics import Collector
from jobq.sentry import install
from jobq.tables import all_jobs
from jobq.tracing import instrument
from jobq_cli.app import run
from jobq_cli.logs import JsonFormatter, TextFormatter

pytestmark = pytest.mark.anyio
PASSWORD = "pa55w0rd-of-args"
ARGS: dict[str, Any] = {"token": CANARY, "card": secret_app.Card("Ann", NUMBER), "password": PASSWORD}
HOWS = ["ok", "pause", "permanent", "exotic", "raises"]
SHOWING = [words for command in LOOKING for words in lines(command, id="{id}", canary="none", app="secret_app:app")]


def show(ids: Iterable[int]) -> list[list[str]]:
    """Run every command that looks, at each job where it takes one; those that failed (health may find a pause)."""
    once = [words for words in SHOWING if "{id}" not in words]
    each = [[word.format(id=id_) for word in words] for id_ in ids for words in SHOWING if "{id}" in words]
    return [words for words in (*once, *each) if run(words) > (words[0] == "health")]


def found_in(text: str) -> list[str]:
    """Which canaries a text holds, in whatever form."""
    wanted = [*forms(CANARY), str(NUMBER), PASSWORD]
    return [each for each in dict.fromkeys(wanted) if each in text]


class Envelopes(Transport):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.texts.append(envelope.serialize().decode())


class Lines(logging.Handler):
    """What the log of `jobq run` would have, in both of its forms, and what any other set-up gets from jobq itself."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts += [TextFormatter().format(record), JsonFormatter().format(record)]
        if record.name.startswith("jobq"):
            self.texts += [record.getMessage(), str(vars(record))]


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines, root = Lines(), logging.getLogger()
    before = root.level
    root.addHandler(lines)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(lines)
    root.setLevel(before)


@pytest.fixture
def sentry() -> Iterator[Envelopes]:
    """With local variables, which are the worst case."""
    envelopes = Envelopes()
    client = sentry_sdk.Client(
        dsn="https://public@example.invalid/1", transport=envelopes, traces_sample_rate=1.0, default_integrations=False,
        auto_enabling_integrations=False, integrations=[LoggingIntegration(event_level=None)],
    )  # fmt: skip
    before = sentry_sdk.get_global_scope().client
    sentry_sdk.get_global_scope().set_client(client)
    install(app, every_attempt=True, local_variables=True)
    yield envelopes
    client.close(timeout=0)
    sentry_sdk.get_global_scope().set_client(before)
    outgoing.watchers.clear()


@pytest.fixture
def spans() -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(app, tracer_provider=provider)
    return exporter


@pytest.fixture(autouse=True)
def plain_app() -> Iterator[None]:
    """The application is a module's: what was installed in it, and told to it, is taken away again."""
    around, callbacks = list(app._around), list(app._on_error)
    yield
    app._around[:], app._on_error[:] = around, callbacks


@pytest.mark.parametrize("kind", ["in_loop", "in_thread", "in_process"])
async def test_f69_no_value_of_a_secret_argument_gets_out(
    bench: Bench, kind: str, lines: Lines, sentry: Envelopes, spans: InMemorySpanExporter,
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    handler = app.handlers[kind]
    async with bench.working(app, processes=1) as worker:
        collector = Collector(sa.create_engine(bench.url, poolclass=sa.NullPool), worker)
        ids = {how: bench.enqueue(handler, how=how, **ARGS) for how in HOWS if how != "pause"}
        jobs = {how: await bench.until(id_) for how, id_ in ids.items()}
        paused = bench.enqueue(handler, how="pause", **ARGS)
        await bench.until(paused, jobq.State.PENDING, attempt=1)
        registry = CollectorRegistry()
        registry.register(collector)
        metrics = generate_latest(registry).decode()

    capfd.readouterr()  # a handler that prints does so by itself
    monkeypatch.setenv("JOBQ_DATABASE_URL", bench.url)
    assert show([*ids.values(), paused]) == []
    shown = "".join(capfd.readouterr())
    columns = [column for column in all_jobs.c if column.name not in ("args", "result", "meta")]
    progress = sa.cast(all_jobs.c.meta["progress"], sa.Text)
    stored = "\n".join(map(str, bench.execute(sa.select(*columns, progress))))

    assert {how: jobs[how].outcome for how in ("ok", "permanent")} == {
        "ok": "ok: sent *********",
        "permanent": "err: jobq.outcomes.Permanent: no '***'",
    }
    assert "sent *********" in shown
    assert "cannot charge" in stored
    assert "cannot charge" in "".join(sentry.texts)
    assert found_in(shown) == []
    assert found_in(stored) == []
    assert found_in(metrics) == []
    assert [found_in(text) for text in lines.texts if found_in(text)] == []
    assert [found_in(text) for text in sentry.texts if found_in(text)] == []
    assert [span.name for span in spans.get_finished_spans() if found_in(span.to_json())] == []
    assert found_in("".join(map(repr, jobs.values()))) == []


@pytest.mark.parametrize("kind", ["in_loop", "in_thread", "in_process"])
async def test_f69_nor_does_one_that_sql_or_a_bare_kind_has_enqueued(
    bench: Bench, kind: str, lines: Lines, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = {**ARGS, "card": {"name": "Ann", "number": NUMBER}}
    bare = jobq.kind(kind, queue="default").options(max_attempts=1)
    async with bench.working(app, processes=1):
        ids = [bench.enqueue(bare, how=how, **args) for how in HOWS if how != "pause"]
        ((by_sql,),) = bench.execute(
            "SELECT jobq.enqueue(:kind, CAST(:args AS jsonb))", kind=kind, args=json.dumps({"how": "raises", **args})
        )
        jobs = [await bench.until(id_) for id_ in (*ids, by_sql)]

    capfd.readouterr()
    monkeypatch.setenv("JOBQ_DATABASE_URL", bench.url)
    assert show(job.id for job in jobs) == []
    shown = "".join(capfd.readouterr())
    told = [(job.outcome, job.errors, job.progress) for job in jobs]

    assert [job.meta.get("secret") for job in jobs] == [None] * len(jobs)
    assert "sent *********" in shown
    assert 'cannot charge "*********"' in shown
    assert found_in(shown) == []
    assert found_in(str(told)) == []
    assert [found_in(text) for text in lines.texts if found_in(text)] == []


async def test_what_the_handler_needs_is_there_as_it_was_given(bench: Bench) -> None:
    """It is no encryption: whoever may read the table reads the value."""
    async with bench.working(app):
        job = await bench.until(bench.enqueue(secret_app.in_loop, how="ok", **ARGS))

    assert job.args == {"how": "ok", "token": CANARY, "card": {"name": "Ann", "number": NUMBER}, "password": PASSWORD}
    assert job.result == {"api_key": CANARY, "number": 1}
    assert job.checkpoint == {"token": CANARY, "at": 1}
    assert job.meta["secret"] == ["card", "password", "token"]


async def test_f69_args_that_no_longer_fit_are_dead_without_their_values(
    bench: Bench, lines: Lines, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with bench.working(app):
        job = await bench.until(
            bench.add("in_loop", args={"how": "ok", "token": [CANARY], "password": {"x": PASSWORD}})
        )

    monkeypatch.setenv("JOBQ_DATABASE_URL", bench.url)
    assert run(["show", str(job.id)]) == 0
    shown = capsys.readouterr().out
    assert job.state is jobq.State.DEAD
    assert "args.token: expected str, got list (a secret: the value is not shown)" in str(job.outcome)
    assert found_in(json.dumps([job.outcome, job.errors[0].message, job.errors[0].traceback])) == []
    assert [found_in(text) for text in lines.texts if found_in(text)] == []
    assert found_in(shown.replace("password", "")) == []
