"""Attack 1 at named points: each victim serves a queue of its own, and dies; another one ends its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from arena import RESCUED_SECONDS, Arena
from fleet import AT_WORK, Member, until
from traps import OwnCommit, Trap, is_claim, is_completion, set_up

JOBS = 10


@dataclass(frozen=True)
class Point:
    """`place`: what attack_app.py calls it; else a trap in the network.

    `ended_by_victim`: whether jobs end all the same in the attempt that was killed; None: both is right.
    """

    kind: str = "work"
    place: str = ""
    trap: Callable[[], Trap] | None = None
    ended_by_victim: bool | None = False
    seconds: float = 0.05


def _commit(reply: bool = False, **fate: bool) -> Trap:
    own = OwnCommit()
    watched = Trap(request=own.asked, **fate)
    if reply:
        watched.request, watched.reply = lambda data: own.asked(data) and False, own.answered
    return watched


POINTS = {
    "after the claim's commit, before its reply": Point(trap=partial(Trap, reply=is_claim)),
    "before the effect": Point(place="before the effect", ended_by_victim=None),
    "after the effect": Point(place="after the effect", ended_by_victim=None),
    "in a completion batch that is lost": Point(trap=partial(Trap, request=is_completion)),
    "in a completion batch that arrives": Point(
        trap=partial(Trap, request=is_completion, arrives=True), ended_by_victim=True
    ),
    "after a beat, before any rescue": Point(place="after a beat", seconds=30),
    "before the COMMIT": Point(kind="book", place="before the COMMIT"),
    "in a COMMIT that is lost": Point(kind="book", trap=_commit),
    "in a COMMIT that arrives": Point(kind="book", trap=partial(_commit, arrives=True), ended_by_victim=True),
    "after the COMMIT, before its reply": Point(kind="book", trap=partial(_commit, reply=True), ended_by_victim=True),
    "in the only attempt": Point(kind="once", place="running"),
}


@dataclass
class Scene:
    """What one point's victim was given, and what became of it."""

    name: str
    point: Point
    queue: str
    victim: Member
    trap: Trap | None
    jobs: list[int] = field(default_factory=list)


def attack_points(arena: Arena, names: Sequence[str] = tuple(POINTS)) -> tuple[list[Scene], list[str]]:
    """Kill a worker at each of these points, all at once; another one rescues, a third then ends what they had.

    Returns what was done, and the violations.
    """
    arena.start(queues="none")
    with ExitStack() as traps:
        scenes = [_scene(arena, traps, name, f"q{n}") for n, name in enumerate(names)]
        for scene in scenes:
            scene.victim.until_said(AT_WORK)
            if scene.trap is not None:
                scene.trap.victim = scene.victim
        for scene in scenes:
            scene.jobs = arena.enqueue(scene.point.kind, JOBS, scene.queue, seconds=scene.point.seconds)
        for scene in scenes:
            until(lambda scene=scene: not scene.victim.is_alive, f"the death {scene.name}")
            arena.until_dead(scene.victim)
        is_on_time = _end_all(arena, scenes)
    return scenes, arena.violations(is_on_time=is_on_time)


def _scene(arena: Arena, traps: ExitStack, name: str, queue: str) -> Scene:
    point = POINTS[name]
    trap = traps.enter_context(set_up(point.trap(), arena.board.url)) if point.trap is not None else None
    url = trap.url if trap is not None else None
    victim = arena.start(point=point.place, url=url, is_ready=False, queues=queue)
    return Scene(name, point, queue, victim, trap)


def _end_all(arena: Arena, scenes: Sequence[Scene]) -> bool:
    """Whether all jobs could be ended. What was to be slow need not be so again."""
    lost = "SELECT count(*) FROM jobq.jobs WHERE worker_id IS NOT NULL"
    arena.board.rows("UPDATE jobq.jobs SET args = '{\"seconds\": 0}'")
    until(lambda: arena.board.one(lost) == 0, "the rescue of all", within=RESCUED_SECONDS + 5)
    arena.start(queues=",".join(scene.queue for scene in scenes))
    return arena.all_end([job for scene in scenes for job in scene.jobs], within=10)


def ended_by_victim(arena: Arena, scene: Scene) -> int:
    """How many of its jobs ended in the attempt that the kill interrupted."""
    ended = "SELECT count(*) FROM jobq.finished_jobs WHERE id = ANY(:ids) AND attempt = 1 AND state = 'done'"
    return int(arena.board.one(ended, ids=scene.jobs))
