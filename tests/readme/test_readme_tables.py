"""The tables of options in the README: each name is one that the library takes, and none is missing."""

from __future__ import annotations

import ast
import inspect
import re
from typing import get_args

import anyio
import pytest
import sqlalchemy as sa
from documents import Row, rows, section, snippets, spans

import jobq
import jobq.testing
from jobq import pytest_plugin
from jobq.handlers import Handler
from jobq.metrics import Collector
from jobq.options import OnConflict, Options

CONFLICTS = rows("README.md", "Unique keys")
QUEUES = rows("README.md", "Queues")
TESTING = rows("README.md", "In your tests")
PARAMETER = re.compile(r"(\w+)=(?:\S.*)?")  # `keep=`, `fifo=True`
TAKERS = [
    jobq.App.handler, jobq.App.queue, jobq.App.schedule, jobq.cron, jobq.every, jobq.per_minute, jobq.pause,
    jobq.recent, jobq.testing.drain, jobq.Enqueued, Handler.options, Options,
]  # fmt: skip


def parameters(function: object) -> set[str]:
    return set(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_the_table_of_conflicts_is_whole() -> None:
    words = [ast.literal_eval(spans(row.cells[0])[0]) for row in CONFLICTS]

    assert sorted(words) == sorted(get_args(OnConflict))


def test_the_settings_of_a_queue_are_all_told() -> None:
    (shown,) = [block for block in snippets("README.md") if block.heading == "Queues"]
    told = {name for row in QUEUES for name in re.findall(r"`(\w+)", row.cells[0])}

    assert told <= parameters(jobq.App.queue)
    assert parameters(jobq.App.queue) - {"self", "name"} <= set(re.findall(r"(\w+)=", shown.text))


@pytest.mark.parametrize("row", TESTING, ids=lambda row: row.id)
def test_what_a_test_may_use_is_there(row: Row) -> None:
    for span in spans(row.cells[0]):
        call = ast.parse(span, mode="eval").body
        if isinstance(call, ast.Name):
            assert hasattr(pytest_plugin, call.id), span
        else:
            assert isinstance(call, ast.Call)
            function = getattr(jobq.testing, ast.unparse(call.func))
            inspect.signature(function).bind(*call.args, **{str(each.arg): None for each in call.keywords})


@pytest.mark.parametrize("heading", ["Unique keys", "Queues", "Schedules", "Retention", "In your tests"])
def test_a_parameter_in_the_text_is_there(heading: str) -> None:
    """`keep=`, `raise_errors=False`: of something that the README speaks of."""
    known = set().union(*map(parameters, TAKERS))

    assert {found[1] for span in spans(section("README.md", heading)) if (found := PARAMETER.fullmatch(span))} <= known


@pytest.mark.anyio
async def test_each_metric_in_the_text_is_measured(engine: sa.Engine) -> None:
    worker = jobq.Worker(jobq.App(), engine)
    collector = Collector(engine, worker)
    async with anyio.create_task_group() as group:
        await group.start(worker.run)
        families = await anyio.to_thread.run_sync(lambda: [*collector.collect()])  # in the event loop it would not wait
        worker.stop()
    measured = {sample.name for family in families for sample in family.samples}
    counted = {f"{family.name}_total" for family in families} | {family.name for family in families}
    named = set(re.findall(r"\bjobq_\w+", section("README.md", "Probes, metrics, traces")))

    assert len(named) >= 6
    assert named <= measured | counted
