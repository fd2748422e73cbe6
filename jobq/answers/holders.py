"""Who holds something, in words."""

from __future__ import annotations

from collections.abc import Iterable

from jobq.answers.facts import Facts, SlotFacts
from jobq.spans import ago

NAMED = 3  # of many, so many are named


def held_by(facts: Facts, worker_id: int | None) -> str:
    """A worker by its id, and whether it lives."""
    worker = facts.worker(worker_id)
    if worker is None:
        return f"worker {worker_id}, which is gone"
    if worker.lease_until > facts.now:
        return f"worker {worker.name}"
    return f"worker {worker.name}, whose lease ran out {ago(worker.lease_until, facts.now)}"


def slot_held(facts: Facts, slot: SlotFacts) -> str:
    which = f"job {slot.job_id} on {held_by(facts, slot.worker_id)}"
    return f"{which}, which has ended but its handler has not" if slot.has_ended else which


def some(words: Iterable[str]) -> str:
    """`a, b, c and 4 more`."""
    all_words = list(words)
    shown = ", ".join(all_words[:NAMED])
    return shown if len(all_words) <= NAMED else f"{shown} and {len(all_words) - NAMED} more"


def command_to_run(*options: str) -> str:
    return " ".join(["jobq run MODULE:APP", *options])
