from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jobq_cli.bench import figures, machine, probe
from jobq_cli.bench.app import TIMEOUT, app
from jobq_cli.bench.course import NAMES, steps
from jobq_cli.bench.figures import Figure
from jobq_cli.bench.measures.draining import CIRCUMSTANCES, Circumstance, turned
from jobq_cli.bench.server_log import ServerLog

MORE = Figure("drain", "drained", (90.0, 100.0, 400.0), "jobs/s", must=100.0, aim=200.0)
LESS = Figure("latency", "p50", (2.5,), "ms", must=2.0, more_is_better=False)


def test_a_figure_is_the_median_of_its_rounds_and_is_held_to_what_it_must_be() -> None:
    assert (MORE.value, MORE.is_missed) == (100.0, False)
    assert (LESS.value, LESS.is_missed) == (2.5, True)
    assert not Figure("drain", "drained", (0.1,), "jobs/s").is_missed


def test_a_ratio_is_made_round_by_round() -> None:
    assert figures.ratio((10.0, 30.0), (20.0, 30.0)) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("figure", "before", "is_worse"),
    [
        pytest.param(MORE, 105.0, False, id="a little less"),
        pytest.param(MORE, 111.0, True, id="less by more than a tenth"),
        pytest.param(MORE, 50.0, False, id="more"),
        pytest.param(LESS, 2.3, False, id="a little longer"),
        pytest.param(LESS, 2.2, True, id="longer by more than a tenth"),
        pytest.param(LESS, 0.0, False, id="before it was nothing"),
    ],
)
def test_what_is_a_tenth_worse_than_before_is_marked(figure: Figure, before: float, is_worse: bool) -> None:
    (found,) = figures.compared([figure], {figure.key: before})

    assert found.is_worse is is_worse


def test_what_was_not_measured_before_is_not_compared() -> None:
    (found,) = figures.compared([MORE], {"drain: another": 1.0})

    assert (found.before, found.ratio, found.is_worse) == (None, None, False)


def test_the_figures_of_a_document_are_found_again() -> None:
    written = json.loads(json.dumps({"figures": [figures.as_json(each) for each in (MORE, LESS)]}))

    assert figures.read(written) == {"drain: drained": 100.0, "latency: p50": 2.5}


@pytest.mark.parametrize("document", [[], {}, {"figures": [{}]}, {"figures": 3}, "text", None])
def test_another_document_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="jobq bench --json"):
        figures.read(document)


@pytest.mark.parametrize("each", CIRCUMSTANCES, ids=lambda each: each.name)
def test_of_two_drains_that_are_compared_each_is_the_first_in_its_turn(each: Circumstance) -> None:
    assert turned(each, 1) == [each.over, each.name]
    assert turned(each, 2) == [each.name, each.over]


def test_only_statements_that_were_sent_while_it_watched_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"2026 [1] LOG:  statement: BEGIN\n")
    log = ServerLog(path, 0).from_now()
    with path.open("ab") as file:
        file.write(
            b"2026 [1] LOG:  statement: BEGIN\n2026 [1] LOG:  execute <unnamed>: SELECT\n\t1\n"
            b"2026 [1] DETAIL:  Parameters: $1 = 'LOG'\n2026 [1] LOG:  execute _pg3_2: DELETE\n"
            b"2026 [1] LOG:  checkpoint starting: time\n2026 [1] LOG:  statement: COMMIT\n"
        )

    assert log.statements() == 4


def test_every_handler_that_is_measured_has_a_timeout() -> None:
    assert {handler.settings.timeout for handler in app.handlers.values()} == {TIMEOUT}


def test_each_step_has_its_place_in_the_bar() -> None:
    assert steps(frozenset({"drain"}), 3) == steps(frozenset({"drain", "threads"}), 3) - 3 == 3
    assert steps(frozenset(NAMES), 1) > len(NAMES)


def test_hits_of_several_processes_are_added_up(tmp_path: Path) -> None:
    path = str(tmp_path / "probe")
    probe.clear(path)
    assert probe.read(path) == probe.Hits()

    one, other = probe.Probe(path), probe.Probe(path)
    before = probe.now()
    for _ in range(3):
        one.hit()
    other.hit(index=1)
    one.sent(1, before, before)

    found = probe.read(path)
    assert found.number == 4
    assert before <= found.first <= found.last <= probe.now()
    (times,) = probe.read_times(path, 2)
    assert times.before == times.committed == before <= times.started


@pytest.mark.skipif(not machine.IS_KNOWN, reason="the system does not tell")
def test_a_process_has_used_processor_time_and_memory_of_this_machine() -> None:
    before = machine.cpu_of([os.getpid()]), machine.busy()
    while machine.cpu_of([os.getpid()]) < before[0] + 0.05:
        pass

    assert machine.busy() > before[1]
    assert machine.memory_of(os.getpid()) > 2**20
    assert machine.cpu_of([2**22 + 1]) == 0  # there is no such process


@pytest.mark.skipif(not machine.IS_KNOWN, reason="the system does not tell")
def test_a_process_is_kept_on_one_core_for_a_while() -> None:
    before = os.sched_getaffinity(0)

    with machine.on_one_core(os.getpid()):
        assert os.sched_getaffinity(0) == {min(before)}

    assert os.sched_getaffinity(0) == before
