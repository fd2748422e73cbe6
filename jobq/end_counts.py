"""Counts of ended attempts, for Prometheus: by queue, kind and how they ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from jobq.events import JobEnds

WAITS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)
DURATIONS = (0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)
OUTCOMES = {"ok": "ok", "fail": "fail", "skip": "skip", "dead": "err"}  # the others go back, and have not finished
LABELS = ("queue", "kind")


class Spans:
    """How many were up to each bound, and their sum."""

    __slots__ = ("_bounds", "_numbers", "_seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """So many more: sorted once, since a look for the bucket of each takes three times as long."""
        ordered, passed = sorted(seconds), 0
        for place, bound in enumerate(self._bounds):
            up_to = bisect_right(ordered, bound)
            self._numbers[place] += up_to - passed
            passed = up_to
        self._numbers[-1] += len(ordered) - passed
        self._seconds += sum(ordered)

    def tell(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        family.add_metric(labels, list(zip(bounds, accumulate(self._numbers), strict=True)), self._seconds)


class EndCounts:
    """What `Worker.on_ends` tells, in numbers of its own: the metrics of prometheus_client took 2.6 us for an end, a
    tenth of what a quick job costs. Counted in the loop's thread alone; may be read in any."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._spans: dict[tuple[str, str], tuple[Spans, Spans]] = {}

    def count(self, ends: JobEnds) -> None:
        """So many more."""
        key = ends.queue, ends.kind, ends.word
        self._numbers[key] = self._numbers.get(key, 0) + len(ends.waits)
        spans = self._spans.get(key[:2])
        if spans is None:
            spans = self._spans[key[:2]] = Spans(WAITS), Spans(DURATIONS)
        spans[0].add(ends.waits)
        spans[1].add(ends.durations)

    def collect(self) -> Iterator[Metric]:
        """The families, for one scrape."""
        finished = CounterMetricFamily("jobq_finished", "Jobs that ended", labels=(*LABELS, "outcome"))
        back = CounterMetricFamily("jobq_put_back", "Attempts whose job runs again later", labels=(*LABELS, "reason"))
        for (queue, kind, word), number in list(self._numbers.items()):
            outcome = OUTCOMES.get(word)
            (back if outcome is None else finished).add_metric((queue, kind, outcome or word), number)
        waits = HistogramMetricFamily("jobq_wait_seconds", "From when a job was due to its claim", labels=LABELS)
        durations = HistogramMetricFamily(
            "jobq_duration_seconds", "From a job's start to its recorded end", labels=LABELS
        )
        for labels, (wait, duration) in list(self._spans.items()):
            wait.tell(waits, labels)
            duration.tell(durations, labels)
        yield from (finished, back, waits, durations)
