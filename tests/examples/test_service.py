"""examples/service: what its README says, its own tests, and its forty queues in a fleet against refusing providers."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from readme_steps import Example, ExampleOf

QUEUES = 40
LINES = 150
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
OWNERS_TESTS = "9 passed"
NOTHING_LEFT = "0 pending, 0 running"

pytestmark = pytest.mark.timeout(300)  # a dozen processes, on a machine that may be busy


@pytest.fixture
def service(example_of: ExampleOf) -> Example:
    """A copy with an empty database."""
    return copied(example_of)


@pytest.fixture
def fleet(service: Example) -> Example:
    """Two workers at work, and the providers."""
    service.run("jobq migrate")
    service.start("python fake_provider.py").until("serving")
    for worker in [service.start("jobq run enrich.jobs:app") for _ in range(2)]:
        worker.until("is at work")
    return service


def copied(example_of: ExampleOf) -> Example:
    service = example_of("service")
    service.environment |= {"PROVIDER_PORT": str(service.port), "PROVIDER_URL": f"http://localhost:{service.port}"}
    return service


@pytest.mark.slow
def test_the_readme_works_on_a_fresh_clone(example_alone: ExampleOf) -> None:
    service = copied(example_alone)
    ready = {"python": "serving", "jobq": "is at work"}
    awaited = {
        "jobq stats": "1 pending, 0 running, 6 done",
        f"curl -s localhost:{service.port}/asked": '"GET /apollo/companies/nobody.invalid", "PUT /crm/globex',
    }
    printed = {}
    for step in service.steps():
        if step.endswith("&"):
            service.start(step).until(ready[step.split()[0]])
        else:
            says = awaited.get(step)
            printed[step] = service.run_until(step, says) if says else service.run(step)

    assert re.search(r"queue crm.globex is paused until .*: HTTP 401", printed["jobq stats"])
    assert re.search(r"job 5 waits: its queue crm.globex is paused until .*HTTP 401", printed["jobq why 5"])
    assert re.search(r"4 +done +apollo +apollo.company +0/5 .* fail: no match", printed["jobq list"])
    assert "0 faults: 3 enqueues, 3 schedules" in printed["jobq check enrich.jobs:app"]
    assert OWNERS_TESTS in printed["pytest -q"]


@pytest.mark.slow
def test_a9_a_refused_key_pauses_the_queue_of_one_customer_for_an_hour_in_the_whole_fleet(fleet: Example) -> None:
    answer(fleet, "/crm/globex", 401)
    fleet.run("python -m enrich globex a.example b.example c.example")
    fleet.run("python -m enrich acme d.example e.example")
    stats = fleet.run_until("jobq stats", "3 pending, 0 running, 7 done")

    assert re.search(r"queue crm.globex is paused until .*: HTTP 401", stats)
    (paused,) = [queue for queue in statistics(fleet)["queues"] if queue["paused_until"] is not None]
    still = datetime.fromisoformat(paused["paused_until"]) - datetime.fromisoformat(statistics(fleet)["at"])
    assert HOUR - 5 * MINUTE < still < HOUR
    assert [asked for asked in asked_of(fleet) if "globex" in asked] == ["PUT /crm/globex/companies/a.example"]
    waiting = ids(listed(fleet, "--queue crm.globex"))
    for job_id in waiting:
        assert "its queue crm.globex is paused until" in fleet.run(f"jobq why {job_id}")

    answer(fleet, "/crm/globex", 200)
    fleet.run("jobq resume crm.globex")
    fleet.run_until("jobq stats", NOTHING_LEFT)
    pushed = [asked[-len("a.example") :] for asked in asked_of(fleet) if "globex" in asked]
    assert pushed == ["a.example", "a.example", "b.example", "c.example"]
    assert {job["failures"] for job in listed(fleet, "--queue crm.globex")} == {0}


@pytest.mark.slow
def test_the_order_of_a_queue_is_kept_also_where_a_job_is_tried_again(fleet: Example) -> None:
    answer(fleet, "/apollo/companies/b.example", 503)
    fleet.run("python -m enrich acme a.example b.example c.example d.example")
    fleet.run_until(f"curl -s localhost:{fleet.port}/asked", "b.example")
    answer(fleet, "/apollo/companies/b.example", 200)

    fleet.run_until("jobq stats", f"{NOTHING_LEFT}, 8 done")

    looked_up = [asked[-len("a.example") :] for asked in asked_of(fleet) if asked.startswith("GET /apollo/companies")]
    first, *retries = [domain for domain in looked_up if domain == "b.example"]
    assert retries
    assert looked_up == ["a.example", first, *retries, "c.example", "d.example"]
    pushed = [asked[-len("a.example") :] for asked in asked_of(fleet) if "/crm/acme/" in asked]
    assert pushed == ["a.example", "b.example", "c.example", "d.example"]


@pytest.mark.slow
def test_a_queue_is_silent_for_five_minutes_where_its_provider_has_had_too_much(fleet: Example) -> None:
    answer(fleet, "/apollo", 429)
    fleet.run("python -m enrich acme a.example b.example")
    fleet.run_until("jobq list --state pending", "1/5")
    first, second = ids(listed(fleet, "--queue apollo"))
    answer(fleet, "/apollo", 200)

    assert re.search(
        r"waits for retry .* in [2-5]m.* after httpx.HTTPStatusError: .*429", fleet.run(f"jobq why {first}")
    )
    assert f"job {first} waits for retry" in fleet.run(f"jobq why {second}")
    fleet.run("jobq schedules run crm.report")
    fleet.run_until("jobq list --kind crm.report", "ok: paused: none")  # other queues go on
    assert asked_of(fleet) == ["GET /apollo/companies/a.example"]


@pytest.mark.slow
def test_what_was_looked_up_this_week_is_skipped_also_by_the_schedule(fleet: Example) -> None:
    fleet.run("python -m enrich acme a.example nobody.invalid")
    fleet.run_until("jobq stats", f"{NOTHING_LEFT}, 3 done")

    assert fleet.run("jobq schedules run apollo.refresh").startswith("enqueued job ")
    fleet.run_until("jobq stats", f"{NOTHING_LEFT}, 6 done")

    outcomes = [job["outcome"] for job in sorted(listed(fleet, "--kind apollo.company"), key=lambda job: job["id"])]
    assert outcomes[:2] == ["ok: 270 people", "fail: no match"]
    assert sorted(outcomes[2:]) == ["fail: no match", "skip: fresh"]  # a negative answer is asked for again
    assert asked_of(fleet).count("GET /apollo/companies/a.example") == 1


@pytest.mark.slow
def test_its_queues_and_schedules_are_listed_and_each_worker_stops_cleanly(service: Example) -> None:
    service.run("jobq migrate")
    worker = service.start("jobq run enrich.jobs:app")
    worker.until("is at work")

    queues = [json.loads(line) for line in service.run_until("jobq queue list --json", "crm.zorin").splitlines()]
    assert sum(queue["fifo"] is True for queue in queues) == QUEUES
    schedules = service.run("jobq schedules --app enrich.jobs:app")
    assert re.search(r"apollo.refresh\n  every day, UTC.*\n  next  \w+ \d", schedules)
    assert re.search(r"crm.report\n  At 07:00 on Monday through Friday, Europe/Paris.*\n  next  \w+ \d", schedules)
    assert re.search(r"apollo.credits\n  predicate .*\n  next  \w+ \d", schedules)
    assert worker.stop() == 0


def test_every_enqueue_of_it_fits_its_handler(service: Example) -> None:
    assert "0 faults: 3 enqueues, 3 schedules" in service.run("jobq check enrich.jobs:app --no-database")


def test_it_is_less_than_150_lines_of_python(service: Example) -> None:
    files = list((service.directory / "enrich").rglob("*.py"))
    assert files
    assert sum(len(file.read_text().splitlines()) for file in files) < LINES


@pytest.mark.slow
def test_the_tests_of_its_owner_pass(service: Example) -> None:
    assert OWNERS_TESTS in service.run("pytest -q -p no:cacheprovider")


@pytest.mark.slow
def test_its_types_are_right(service: Example, mypy_cache: Path) -> None:
    checked = service.run(f"python -m mypy --strict --cache-dir={mypy_cache} enrich tests fake_provider.py")

    assert "no issues found" in checked


def answer(service: Example, below: str, status: int) -> None:
    """What the providers say from now on."""
    service.run(f"curl -sf -X PUT localhost:{service.port}/answers{below} -d {status}")


def asked_of(service: Example) -> list[str]:
    asked: list[str] = json.loads(service.run(f"curl -sf localhost:{service.port}/asked"))
    return asked


def statistics(service: Example) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(service.run("jobq stats --json"))
    return found


def listed(service: Example, which: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.run(f"jobq list --json {which}").splitlines()]


def ids(jobs: list[dict[str, Any]]) -> list[int]:
    return sorted(job["id"] for job in jobs)
