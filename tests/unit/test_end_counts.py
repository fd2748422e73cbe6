"""Counts of ended attempts, as Prometheus reads them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from jobq.end_counts import DURATIONS, EndCounts
from jobq.events import JobEnds


def scraped(counts: EndCounts) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    registry.register(counts)  # type: ignore[arg-type]
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


@pytest.mark.parametrize(("word", "name"), [("ok", "finished"), ("dead", "finished"), ("retry", "put_back")])
def test_each_end_is_counted_once_under_its_word(word: str, name: str) -> None:
    counts = EndCounts()
    for number in range(5):
        counts.count(JobEnds("q" if number else "other", "k", word, [0.0], [0.0]))

    found = scraped(counts)

    label = {"dead": "err"}.get(word, word)
    assert found[f"jobq_{name}_total", *sorted(["q", "k", label])] == 4
    assert found[f"jobq_{name}_total", *sorted(["other", "k", label])] == 1
    assert found["jobq_duration_seconds_count", "k", "q"] == 4


def test_a_bucket_holds_what_is_up_to_its_bound_and_all_before() -> None:
    counts = EndCounts()
    seconds = [*DURATIONS, *(bound + 0.001 for bound in DURATIONS)]
    for some in (seconds[:1], seconds[1:][::-1]):
        counts.count(JobEnds("q", "k", "ok", [0.0] * len(some), some))

    found = scraped(counts)

    for bound in (*DURATIONS, float("inf")):
        le = "+Inf" if bound == float("inf") else str(float(bound))
        number = sum(each <= bound + 1e-9 for each in seconds)
        assert found["jobq_duration_seconds_bucket", *sorted(["q", "k", le])] == number
    assert found["jobq_duration_seconds_sum", "k", "q"] == pytest.approx(sum(seconds))
