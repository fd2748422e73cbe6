"""Spans as the SDK of OpenTelemetry exports them: the enqueue, the job, and what the handler does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from bench import Bench, eventually
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from sqlalchemy.ext.asyncio import create_async_engine

import jobq
from jobq import outgoing
from jobq.tables import jobs
from jobq.tracing import instrument

pytestmark = pytest.mark.anyio


class Spans:
    """What was exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("shop")

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


def ids(span: ReadableSpan) -> tuple[int, int]:
    made: Any = span.get_span_context()
    return made.trace_id, made.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


@pytest.fixture
def spans(app: jobq.App) -> Iterator[Spans]:
    """The app is instrumented, and so are all enqueues of the test."""
    spans = Spans()
    instrument(app, tracer_provider=spans.provider)
    yield spans
    outgoing.watchers.clear()


async def test_a_job_is_a_child_of_its_enqueue_and_what_the_handler_does_is_one_of_the_job(
    bench: Bench, app: jobq.App, spans: Spans
) -> None:
    @app.handler("email.send", queue="email")
    async def send(to: str) -> None:
        with spans.tracer.start_as_current_span("smtp"):
            pass

    with spans.tracer.start_as_current_span("request"):
        id_ = bench.enqueue(send, "a@b.c")
    async with bench.working(app):
        await bench.until(id_)

    request, enqueue, process, smtp = map(spans.one, ("request", "enqueue email", "process email", "smtp"))
    assert [parent_of(span) for span in (request, enqueue, process, smtp)] == [
        None, ids(request), ids(enqueue), ids(process),
    ]  # fmt: skip
    assert [(link.context.trace_id, link.context.span_id) for link in process.links] == [ids(enqueue)]
    assert (enqueue.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert dict(enqueue.attributes or {}) == {
        "messaging.system": "jobq",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "email",
        "messaging.message.id": str(id_),
        "jobq.kind": "email.send",
    }
    assert dict(process.attributes or {}) == {
        "messaging.system": "jobq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "email",
        "messaging.message.id": str(id_),
        "jobq.kind": "email.send",
        "jobq.attempt": 1,
        "jobq.failures": 0,
    }


async def test_a_handler_in_a_thread_has_its_spans_in_the_same_trace(bench: Bench, app: jobq.App, spans: Spans) -> None:
    threads: list[threading.Thread] = []

    @app.handler("k")
    def handler() -> None:
        threads.append(threading.current_thread())
        with spans.tracer.start_as_current_span("inside"):
            pass

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert threads != [threading.main_thread()]
    assert parent_of(spans.one("inside")) == ids(spans.one("process default"))


async def test_a_job_that_a_handler_enqueues_is_in_its_trace(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("second")
    async def second() -> None: ...

    @app.handler("first", queue="q")
    async def first() -> None:
        async with jobq.current().transaction() as session:
            await jobq.enqueue_async(session, second)

    async with bench.working(app):
        bench.enqueue(first)
        await eventually(lambda: spans.named("process default"), "the second job")

    enqueue = spans.one("enqueue default")
    assert parent_of(enqueue) == ids(spans.one("process q"))
    assert parent_of(spans.one("process default")) == ids(enqueue)


async def test_many_jobs_have_one_producer_span_and_each_its_own(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k")
    async def handler(n: int) -> None: ...

    with bench.connect() as connection:
        rows = [handler.args(1), handler.options(queue="other", timeout=timedelta(minutes=1)).args(2)]
        jobq.enqueue_many(connection, handler, rows)
    async with bench.working(app):
        await bench.until_all_ended()

    enqueue = spans.one("enqueue")
    assert (enqueue.attributes or {})["messaging.batch.message_count"] == 2
    assert "messaging.destination.name" not in (enqueue.attributes or {})
    processes = [*spans.named("process default"), *spans.named("process other")]
    assert [parent_of(span) for span in processes] == [ids(enqueue)] * 2


async def test_a_select_has_one_producer_span_too(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k")
    async def handler(n: int) -> None: ...

    with bench.connect() as connection:
        numbers = sa.select(sa.func.generate_series(1, 3, type_=sa.Integer).label("n"))
        assert jobq.enqueue_select(connection, handler, numbers) == 3
    async with bench.working(app):
        await bench.until_all_ended()

    enqueue = spans.one("enqueue default")
    assert (enqueue.attributes or {})["messaging.batch.message_count"] == 3
    assert [parent_of(span) for span in spans.named("process default")] == [ids(enqueue)] * 3


async def test_an_async_enqueue_is_a_child_of_the_span_that_it_is_awaited_in(
    bench: Bench, app: jobq.App, spans: Spans
) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    engine = create_async_engine(bench.url)
    with spans.tracer.start_as_current_span("request"):
        async with engine.begin() as connection:
            await jobq.enqueue_async(connection, handler)
        after = trace.get_current_span().get_span_context().span_id
    await engine.dispose()

    assert parent_of(spans.one("enqueue default")) == ids(spans.one("request"))
    assert after == ids(spans.one("request"))[1]


async def test_every_attempt_has_a_span_of_its_own_and_a_failed_one_its_error(
    bench: Bench, app: jobq.App, spans: Spans
) -> None:
    @app.handler("k", retry=lambda failures, error: timedelta(0))
    async def handler() -> None:
        if jobq.current().job.attempt == 1:
            raise ValueError("no")

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    first, second = spans.named("process default")
    assert (first.status.status_code, (first.attributes or {})["error.type"]) == (StatusCode.ERROR, "ValueError")
    assert [event.name for event in first.events] == ["exception"]
    assert second.status.status_code is StatusCode.UNSET
    assert ((first.attributes or {})["jobq.attempt"], (second.attributes or {})["jobq.attempt"]) == (1, 2)
    assert parent_of(first) == parent_of(second) == ids(spans.one("enqueue default"))


async def test_a_job_that_is_put_off_is_no_error(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k")
    async def handler() -> None:
        if jobq.current().job.attempt == 1:
            raise jobq.Snooze(timedelta(0))

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert [span.status.status_code for span in spans.named("process default")] == [StatusCode.UNSET] * 2


async def test_a_job_past_its_timeout_is_an_error(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k", timeout=timedelta(milliseconds=20), max_attempts=1)
    async def handler() -> None:
        await eventually(lambda: False, "the timeout")

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert spans.one("process default").status.status_code is StatusCode.ERROR


async def test_an_enqueue_that_is_refused_is_an_error_of_its_span(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    once = handler.options(unique_key="one", on_conflict="raise")
    bench.enqueue(once)
    with pytest.raises(jobq.UniqueKeyError):
        bench.enqueue(once)

    good, bad = spans.named("enqueue default")
    assert (good.status.status_code, bad.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


async def test_what_sql_or_an_older_version_has_enqueued_begins_a_trace_of_its_own(
    bench: Bench, app: jobq.App, spans: Spans
) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    metas = [{}, {"traceparent": "nonsense"}, {"traceparent": 7}, {"traceparent": None, "tracestate": ["a"]}, [1], "x"]
    with spans.tracer.start_as_current_span("start of the worker"):
        async with bench.working(app):
            for meta in metas:
                bench.add("k", meta=meta)
            await bench.until_all_ended()

    found = spans.named("process default")
    assert [parent_of(span) for span in found] == [None] * len(metas)
    assert len({ids(span)[0] for span in found}) == len(metas)


async def test_baggage_travels_with_the_job(bench: Bench, app: jobq.App, spans: Spans) -> None:
    seen: list[object] = []

    @app.handler("k")
    async def handler() -> None:
        seen.append(baggage.get_baggage("tenant"))

    token = context.attach(baggage.set_baggage("tenant", "7"))
    id_ = bench.enqueue(handler)
    context.detach(token)
    async with bench.working(app):
        await bench.until(id_)

    assert seen == ["7"]


async def test_options_stay_beside_what_is_carried(bench: Bench, app: jobq.App, spans: Spans) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    id_ = bench.enqueue(handler.options(timeout=timedelta(seconds=9)))

    meta = bench.job(id_).meta
    assert meta["timeout"] == 9
    assert meta["traceparent"].startswith("00-")


async def test_instrumenting_twice_makes_one_span(bench: Bench, app: jobq.App, spans: Spans) -> None:
    instrument(app, tracer_provider=spans.provider)

    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert sorted(span.name for span in spans.all()) == ["enqueue default", "process default"]


async def test_without_instrumenting_nothing_is_carried(bench: Bench, app: jobq.App) -> None:
    @app.handler("k")
    async def handler() -> None: ...

    bench.enqueue(handler)

    assert [row.meta for row in bench.execute(sa.select(jobs.c.meta))] == [{}]
