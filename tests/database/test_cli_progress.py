"""What handlers have said, in `jobq show` and `jobq list`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from admin_rows import NOW, add_ended, add_job

from jobq import admin
from jobq.model import Progress
from jobq_cli.app import run
from jobq_cli.text import bar

Command = Callable[..., str]
SAID = {"progress": {"fraction": 0.4, "message": "page 4 of 10", "attempt": 2}, "checkpoint": {"page": 4}}


@pytest.fixture
def jobq(capsys: pytest.CaptureFixture[str]) -> Command:
    """What a command line prints."""

    def call(*arguments: object) -> str:
        capsys.readouterr()
        assert run([str(each) for each in arguments]) == 0
        return capsys.readouterr().out

    return call


def add_running(rows: sa.Connection, **values: Any) -> int:
    return add_job(rows, worker_id=7, attempt=2, attempted_at=NOW, **values)


def test_show_has_progress_checkpoint_and_result(rows: sa.Connection, jobq: Command) -> None:
    running = add_running(rows, meta={**SAID, "timeout": 5})
    done = add_ended(rows, "done", attempt=3, meta=SAID, result={"pages": [1, 2]}, outcome="ok: copied")

    shown = jobq("show", running)
    assert "  progress    [########------------]  40 %  page 4 of 10\n" in shown
    assert '  checkpoint  {"page": 4}\n' in shown
    assert '  meta        {"timeout": 5}\n' in shown
    assert "result" not in shown
    shown = jobq("show", done)
    assert "page 4 of 10 (attempt 2)\n" in shown
    assert '  result      {"pages": [1, 2]}\n' in shown

    told = json.loads(jobq("show", done, "--json"))
    assert (told["progress"], told["checkpoint"]) == (SAID["progress"], SAID["checkpoint"])
    assert told["result"] == {"pages": [1, 2]}


def test_what_a_handler_has_kept_is_shown_as_args_are(rows: sa.Connection, jobq: Command) -> None:
    kept = {"stadt": "東京", "seiten": ["\x7f", *range(100_000, 100_010)]}
    done = add_ended(rows, "done", args=kept, meta={"checkpoint": kept}, result=kept)

    shown = jobq("show", done)

    for name in ("args", "checkpoint", "result"):
        assert f'  {name:<11} {{\n{"":16}"stadt": "東京",\n{"":16}"seiten": [\n{"":18}"\\x7f",\n' in shown


def test_list_has_a_column_only_where_there_is_something_to_show(rows: sa.Connection, jobq: Command) -> None:
    plain = add_running(rows)
    assert "progress" not in jobq("list")

    says = add_running(rows, meta=SAID)
    heading, *lines = jobq("list").splitlines()
    assert "progress" in heading
    assert ["40 % page 4 of 10" in line for line in lines] == [True, False]
    told = {each["id"]: each for each in map(json.loads, jobq("list", "--json").splitlines())}
    assert told[says]["progress"] == SAID["progress"]
    assert told[plain]["progress"] is None
    assert not {"meta", "args", "checkpoint", "result"} & set(told[says])


def test_what_somebody_else_has_written_there_breaks_nothing(rows: sa.Connection, jobq: Command) -> None:
    odd = [{"progress": "x\x1b[31m"}, {"progress": {"fraction": 1e300}}, {"progress": [1]}, {"checkpoint": 7}]
    ids = [add_running(rows, meta=meta) for meta in odd]
    evil = {"progress": {"fraction": 1, "message": "\x1b[31mred\nx", "attempt": "x"}}
    ids.append(add_running(rows, meta=evil))

    listed = jobq("list")
    shown = [jobq("show", id_) for id_ in ids]

    assert "\x1b" not in listed + "".join(shown)
    assert "\\x1b[31mred\\nx (attempt 0)" in shown[-1]
    with rows.engine.begin() as connection:
        assert all(admin.get(connection, id_) for id_ in ids)


def test_python_reads_the_same_from_one_job_and_from_many(connection: sa.Connection) -> None:
    id_ = add_ended(connection, "done", meta=SAID, result=[1])

    one, [many] = admin.get(connection, id_), admin.jobs(connection)
    [brief] = admin.each_brief(connection)

    assert one == many
    assert one is not None
    assert (one.progress, one.checkpoint, one.result) == (Progress(0.4, "page 4 of 10", 2), {"page": 4}, [1])
    assert (brief.progress, brief.checkpoint, brief.result) == (one.progress, None, None)


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "[--------------------]   0 %"),
        (0.999, "[###################-]  99 %"),
        (1, "[####################] 100 %"),
    ],
)
def test_a_bar_is_full_only_when_all_is_done(fraction: float, text: str) -> None:
    assert bar(fraction) == text
