"""One world for all that differ in nothing that matters: names of workers and jobs, numbers of attempts."""

from __future__ import annotations

from model.rules import Rules
from model.state import NOBODY, Hold, Job, World


def canonical(world: World, rules: Rules) -> World:
    """The representative of its kind."""
    if rules.attempts_only_grow:
        world = _with_small_attempts(world)
    best = _by_worker(world)
    if len(world.jobs) == 2:
        best = min(best, _by_worker(_swapped(world)), key=_key)
    return best


def _key(world: World) -> tuple[object, ...]:
    return world.jobs, world.workers, world.past or ()


def _with_small_attempts(world: World) -> World:
    """A claim's attempt is compared for equality alone, and later ones are higher than all there are: ranks do."""
    for j, job in enumerate(world.jobs):
        seen = {hold.attempt for worker in world.workers for hold in worker.holds if hold.job == j} | {job.attempt}
        if max(seen) >= len(seen):
            rank = {attempt: n for n, attempt in enumerate(sorted(seen))}
            world = _reranked(world, j, rank)
    return world


def _reranked(world: World, j: int, rank: dict[int, int]) -> World:
    def renamed(hold: Hold) -> Hold:
        return hold._replace(attempt=rank[hold.attempt]) if hold.job == j else hold

    workers = tuple(
        worker._replace(holds=tuple(sorted(map(renamed, worker.holds)))) if worker.holds else worker
        for worker in world.workers
    )
    job = world.jobs[j]
    return world.with_job(j, job._replace(attempt=rank[job.attempt]))._replace(workers=workers)


def _swapped(world: World) -> World:
    """Job 0 for job 1."""
    workers = tuple(
        worker._replace(holds=tuple(sorted(hold._replace(job=1 - hold.job) for hold in worker.holds)))
        if worker.holds
        else worker
        for worker in world.workers
    )
    past = world.past and world.past[::-1]
    return world._replace(jobs=world.jobs[::-1], workers=workers, past=past)


def _by_worker(world: World) -> World:
    """Workers in the order of what they are and have."""
    rows = [world.jobs, world.past or ()]
    keys = [(worker, [[job.owner == w for job in jobs] for jobs in rows]) for w, worker in enumerate(world.workers)]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if order == list(range(len(order))):
        return world
    new = {old: w for w, old in enumerate(order)} | {NOBODY: NOBODY}

    def renamed(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        return tuple(job._replace(owner=new[job.owner]) for job in jobs)

    past = world.past and renamed(world.past)
    return world._replace(jobs=renamed(world.jobs), workers=tuple(world.workers[w] for w in order), past=past)
