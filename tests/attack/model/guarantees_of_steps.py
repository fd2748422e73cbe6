"""The guarantees of DESIGN.md, asked of every step: which one it breaks, or None."""

from __future__ import annotations

from model.rules import Rules
from model.state import ENDED, NOBODY, Step, World


def broken_by(before: World, step: Step, rules: Rules) -> str | None:
    """The first guarantee that does not hold in, or after, this step."""
    if step.wrote is not None and not step.wrote.true:
        return "G3" if step.wrote.written else "G4"
    if step.took is not None and not step.took.due:
        return "G6"
    after = step.after
    for j, (old, new) in enumerate(zip(before.jobs, after.jobs, strict=True)):
        has_changed = old.place in ENDED and (new.place, new.attempt) != (old.place, old.attempt)
        if has_changed and "crash" not in step.name and "by hand" not in step.name:
            return "G3"
        if (new.place == "open" and new.failures >= rules.max_attempts) or new.failures > rules.max_attempts:
            return "G7"
        if new.place == "done" and not new.worked and not _work_left(after, j):
            return "G1"
        if _overlap(after, j):
            return "G5"
    return None


def _work_left(world: World, j: int) -> bool:
    """The broken twin's, as long as its process lives."""
    return any(hold.job == j and hold.phase == "work left" for worker in world.workers for hold in worker.holds)


def _overlap(world: World, j: int) -> bool:
    """Whether two handlers of a job run, and nothing excuses it."""
    holds = [hold for worker in world.workers for hold in worker.holds if hold.job == j]
    running = [hold for hold in holds if hold.phase in ("run", "open")]
    return len(running) > 1 and sum(not hold.excused for hold in running) > 1


def is_served(world: World, j: int) -> bool:
    """Ended, or free to be claimed as soon as it is due."""
    job = world.jobs[j]
    return job.place != "open" or (job.owner == NOBODY and not world.is_locked(j))
