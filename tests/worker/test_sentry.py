"""What Sentry gets: the envelopes as its SDK would send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sentry_sdk
from bench import Bench, eventually
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.transport import Transport

import jobq
from jobq import outgoing
from jobq.sentry import install, monitor_of, slug_of

pytestmark = pytest.mark.anyio
SECRET = "hunter2"


class Mailbox(Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[tuple[str, dict[str, Any]]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            kind = "event" if item.type is None else item.type
            if item.type in ("event", "transaction", "check_in"):
                self.items.append((kind, json.loads(item.get_bytes())))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for name, content in self.items if name == kind]


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    mailbox = Mailbox()
    client = sentry_sdk.Client(
        dsn="https://public@example.invalid/1",
        transport=mailbox,
        traces_sample_rate=1.0,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration()],
    )
    before = sentry_sdk.get_global_scope().client
    sentry_sdk.get_global_scope().set_client(client)
    yield mailbox
    client.close(timeout=0)
    sentry_sdk.get_global_scope().set_client(before)
    outgoing.watchers.clear()


def traces(contents: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    """Trace, span and parent of each."""
    found = [content["contexts"]["trace"] for content in contents]
    return [(trace["trace_id"], trace["span_id"], trace.get("parent_span_id")) for trace in found]


async def test_only_the_last_failure_of_a_job_is_reported_with_its_tags_and_without_its_args(
    bench: Bench, app: jobq.App, mailbox: Mailbox
) -> None:
    install(app)

    @app.handler("card.charge", queue="payments", max_attempts=2, retry=lambda failures, error: timedelta(0))
    async def charge(token: str) -> None:
        secret = f"{token}!"
        raise ValueError(f"declined after {len(secret)} characters")

    async with bench.working(app):
        id_ = bench.enqueue(charge, SECRET)
        await bench.until(id_)

    (event,) = mailbox.of("event")
    assert event["exception"]["values"][-1]["type"] == "ValueError"
    assert {name: event["tags"][name] for name in ("jobq.queue", "jobq.kind", "jobq.attempt")} == {
        "jobq.queue": "payments", "jobq.kind": "card.charge", "jobq.attempt": 2,
    }  # fmt: skip
    assert event["contexts"]["jobq"] == {"id": id_, "attempt": 2, "failures": 1, "max_attempts": 2}
    assert event["transaction"] == "card.charge"
    assert SECRET not in json.dumps(mailbox.items)


async def test_every_attempt_and_local_variables_are_reported_where_that_is_asked_for(
    bench: Bench, app: jobq.App, mailbox: Mailbox
) -> None:
    install(app, every_attempt=True, local_variables=True)

    @app.handler("k", max_attempts=2, retry=lambda failures, error: timedelta(0))
    async def handler(word: str) -> None:
        raise ValueError("no")

    async with bench.working(app):
        await bench.until(bench.enqueue(handler, "visible"))

    events = mailbox.of("event")
    assert [event["tags"]["jobq.attempt"] for event in events] == [1, 2]
    assert "visible" in json.dumps(events[0]["exception"])


async def test_a_job_continues_the_trace_of_its_enqueue_and_its_error_is_in_it(
    bench: Bench, app: jobq.App, mailbox: Mailbox
) -> None:
    install(app)

    @app.handler("k", queue="email", max_attempts=1)
    def handler() -> None:
        raise ValueError("no")

    with sentry_sdk.start_transaction(op="http.server", name="POST /orders"):
        id_ = bench.enqueue(handler)
    async with bench.working(app):
        await bench.until(id_)

    request, job = mailbox.of("transaction")
    (publish,) = request["spans"]
    ((trace, request_span, _), (job_trace, job_span, job_parent)) = traces([request, job])
    assert (publish["op"], publish["parent_span_id"]) == ("queue.publish", request_span)
    assert publish["data"]["messaging.message.id"] == str(id_)
    assert (job_trace, job_parent) == (trace, publish["span_id"])
    assert (job["transaction"], job["contexts"]["trace"]["op"]) == ("k", "queue.process")
    assert job["contexts"]["trace"]["status"] == "internal_error"
    assert traces(mailbox.of("event"))[0][:2] == (trace, job_span)


async def test_jobs_that_go_well_or_are_put_off_are_no_errors(bench: Bench, app: jobq.App, mailbox: Mailbox) -> None:
    install(app)

    @app.handler("k")
    async def handler() -> jobq.Outcome:
        if jobq.current().job.attempt == 1:
            raise jobq.Snooze(timedelta(0))
        return jobq.Fail("no match")

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert mailbox.of("event") == []
    assert {job["contexts"]["trace"].get("status", "ok") for job in mailbox.of("transaction")} == {"ok"}
    assert mailbox.of("check_in") == []


async def test_what_a_handler_captures_itself_has_the_tags_of_its_job_alone(
    bench: Bench, app: jobq.App, mailbox: Mailbox
) -> None:
    install(app)

    @app.handler("k")
    async def handler(n: int) -> None:
        sentry_sdk.set_tag(f"mine{n}", "yes")
        sentry_sdk.capture_message(f"hello {n}")

    async with bench.working(app):
        for n in (1, 2):
            await bench.until(bench.enqueue(handler, n))

    first, second = mailbox.of("event")
    assert first["tags"]["jobq.kind"] == second["tags"]["jobq.kind"] == "k"
    assert ("mine1" in first["tags"], "mine1" in second["tags"]) == (True, False)


async def test_the_jobs_of_a_schedule_check_in(bench: Bench, app: jobq.App, mailbox: Mailbox) -> None:
    install(app)

    @app.every(timedelta(seconds=1), name="Nightly.report")
    @app.handler("report", max_attempts=2, retry=lambda failures, error: timedelta(0))
    async def report() -> None:
        if jobq.current().job.attempt == 1:
            raise ValueError("no")

    async with bench.working(app):
        await eventually(lambda: [each for each in mailbox.of("check_in") if each["status"] == "ok"], "a check-in")

    first, failed, again, ok = mailbox.of("check_in")[:4]
    assert [each["status"] for each in (first, failed, again, ok)] == ["in_progress", "error", "in_progress", "ok"]
    assert {each["monitor_slug"] for each in (first, failed, again, ok)} == {"nightly-report"}
    assert first["check_in_id"] == failed["check_in_id"] != again["check_in_id"] == ok["check_in_id"]
    assert ok["duration"] >= 0


async def test_a_job_that_is_put_off_goes_on_with_its_check_in(bench: Bench, app: jobq.App, mailbox: Mailbox) -> None:
    install(app)

    @app.handler("k")
    async def handler() -> None:
        if jobq.current().job.attempt == 1:
            raise jobq.Snooze(timedelta(0))

    async with bench.working(app):
        await bench.until(bench.add("k", meta={"schedule": "nightly"}))

    check_ins = mailbox.of("check_in")
    assert [each["status"] for each in check_ins] == ["in_progress", "in_progress", "ok"]
    assert len({each["check_in_id"] for each in check_ins}) == 1


async def test_trouble_of_the_worker_itself_is_reported(bench: Bench, app: jobq.App, mailbox: Mailbox) -> None:
    install(app)
    error = ConnectionError("the server is away")

    for callback in app.error_callbacks:
        callback(jobq.ErrorEvent(None, error, None, False))

    (event,) = mailbox.of("event")
    assert event["exception"]["values"][0]["value"] == "the server is away"


async def test_installing_twice_reports_once(bench: Bench, app: jobq.App, mailbox: Mailbox) -> None:
    install(app)
    install(app)

    @app.handler("k", max_attempts=1)
    async def handler() -> None:
        raise ValueError("no")

    async with bench.working(app):
        await bench.until(bench.enqueue(handler))

    assert len(mailbox.of("event")) == len(app.error_callbacks) == len(app.around_factories) == 1


async def test_without_a_client_jobs_run_as_ever(bench: Bench, app: jobq.App) -> None:
    install(app)

    @app.handler("k")
    async def handler() -> None: ...

    async with bench.working(app):
        job = await bench.until(bench.enqueue(handler))
    outgoing.watchers.clear()

    assert job.state is jobq.State.DONE


@pytest.mark.parametrize(
    ("schedule", "monitor"),
    [
        (jobq.cron("30 */6 * * *", tz="Europe/Paris"), ("crontab", "30 */6 * * *", "Europe/Paris")),
        (jobq.cron("@daily"), ("crontab", "@daily", "UTC")),
        (jobq.cron("0 9 * JUL mon-fri"), ("crontab", "0 9 * JUL mon-fri", "UTC")),
        (jobq.cron("0 9 L * *"), None),
        (jobq.cron("0 9 * * 5L"), None),
        (jobq.cron("0 9 * * 1#2"), None),
        (jobq.every(timedelta(hours=2)), ("interval", 120, "UTC")),
        (jobq.every(timedelta(seconds=90)), None),
        (jobq.every(timedelta(seconds=5)), None),
        (jobq.when(lambda moment: True), None),
    ],
)
def test_a_schedule_becomes_the_monitor_that_can_say_it(schedule: Any, monitor: Any) -> None:
    found: Any = monitor_of(schedule)

    assert (found and (found["schedule"]["type"], found["schedule"]["value"], found["timezone"])) == monitor


@pytest.mark.parametrize(
    ("name", "slug"),
    [("nightly", "nightly"), ("Shop.report:daily/eu", "shop-report-daily-eu"), ("a" * 63, "a" * 50)],
)
def test_a_slug_holds_what_sentry_takes(name: str, slug: str) -> None:
    assert slug_of(name) == slug
