"""Spans of OpenTelemetry, after its conventions for messaging. Needs the extra: `jobq[otel]`.

`instrument()` where jobs are enqueued, `instrument(app)` where they run; in a module that both import, the latter does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider
from opentelemetry.util.types import AttributeValue

from jobq.context import CurrentJob, current
from jobq.describe import describe
from jobq.outcomes import PauseQueue, Snooze
from jobq.outgoing import Outgoing, carried_in, watchers
from jobq.registry import App

SYSTEM = "jobq"


def instrument(*apps: App, tracer_provider: TracerProvider | None = None) -> None:
    """Make a producer span for each enqueue of this process, and a consumer span around each job of these apps.

    The context travels in the row's `meta`, as the global propagator writes it (traceparent, tracestate, baggage): a
    job is a child of the enqueue that made it, and links to it. Call it before a worker of the app runs; a second call
    changes nothing.
    """
    tracer = trace.get_tracer(SYSTEM, tracer_provider=tracer_provider)
    if not any(isinstance(each, _Enqueues) for each in watchers):
        watchers.append(_Enqueues(tracer))
    for app in apps:
        if not any(isinstance(each, _Jobs) for each in app.around_factories):
            app.around(_Jobs(tracer), outermost=True)


class _Enqueues:
    """Watches enqueues, of one job or of many."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def __call__(self, outgoing: Outgoing) -> Iterator[None]:
        name = "enqueue" if outgoing.queue is None else f"enqueue {outgoing.queue}"
        attributes = _attributes("enqueue", "send", outgoing.queue, outgoing.kind)
        with _span(self._tracer, name, SpanKind.PRODUCER, attributes) as span:
            propagate.inject(outgoing.carried)
            yield
            if outgoing.number == 1 and outgoing.created:
                span.set_attribute("messaging.message.id", str(outgoing.created[0]))
            elif outgoing.number is not None and outgoing.number != 1:
                span.set_attribute("messaging.batch.message_count", outgoing.number)


class _Jobs:
    """Around one attempt, in the task or thread of its handler."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(self) -> AbstractContextManager[None]:
        return self._around(current().job, carried_in(current().meta))

    @contextmanager
    def _around(self, job: CurrentJob, carried: Mapping[str, str]) -> Iterator[None]:
        parent = propagate.extract(carried, context=Context())  # of its enqueue, never of what started the worker
        made_by = trace.get_current_span(parent).get_span_context()
        token = contexts.attach(parent)
        try:
            attributes = {**_attributes("process", "process", job.queue, job.kind), **_of(job)}
            links = [Link(made_by)] if made_by.is_valid else []
            with _span(self._tracer, f"process {job.queue}", SpanKind.CONSUMER, attributes, links):
                yield
        finally:
            contexts.detach(token)


@contextmanager
def _span(
    tracer: Tracer,
    name: str,
    kind: SpanKind,
    attributes: Mapping[str, AttributeValue],
    links: Sequence[Link] = (),
) -> Iterator[Span]:
    """The current span within the block. Whatever ends it is its error, but for what puts a job off."""
    with tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, links=links, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except (Snooze, PauseQueue):
            raise
        except BaseException as error:
            span.record_exception(error, attributes=_told(error))
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            raise


def _told(error: BaseException) -> dict[str, AttributeValue]:
    """In place of what OpenTelemetry would say of it: without the values of secret arguments, and bounded."""
    told = describe(error, attempt=0, worker="")
    return {"exception.message": told["message"], "exception.stacktrace": told["traceback"]}


def _attributes(name: str, type_: str, queue: str | None, kind: str) -> dict[str, AttributeValue]:
    queues = {} if queue is None else {"messaging.destination.name": queue}
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.name": name,
        "messaging.operation.type": type_,
        "jobq.kind": kind,
        **queues,
    }


def _of(job: CurrentJob) -> dict[str, AttributeValue]:
    return {"messaging.message.id": str(job.id), "jobq.attempt": job.attempt, "jobq.failures": job.failures}
