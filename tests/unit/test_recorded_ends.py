"""What is told of ends that are recorded together."""

from __future__ import annotations

import pytest
from worker_values import claimed, held_of

from jobq.events import JobEnds
from jobq.worker.held import HeldJobs
from jobq.worker.recorded_ends import RecordedEnds
from jobq.worker.stats import Counters

TEXTS = [None, "ok: sent 1", "ok: sent 2", "skip: nothing to send", "skip: no address"]


@pytest.mark.parametrize("mine", [None, {0, 1, 2, 3, 4}], ids=["all", "all of them named"])
def test_ends_with_one_word_are_told_of_together_whatever_their_texts(mine: set[int] | None) -> None:
    heard: list[JobEnds] = []
    recorded = RecordedEnds(Counters(), HeldJobs())
    recorded.on_ends = [heard.append]
    group = [held_of(claimed(id_)) for id_ in range(len(TEXTS))]
    for held, text in zip(group, TEXTS, strict=True):
        held.outcome = text

    recorded.done(group, mine)

    assert [(ends.word, len(ends.waits), len(ends.durations)) for ends in heard] == [("ok", 3, 3), ("skip", 2, 2)]
