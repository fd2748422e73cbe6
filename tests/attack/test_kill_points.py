"""Attack 1 at named points: SIGKILL where it hurts."""

from __future__ import annotations

from arena import Arena
from kill_points import POINTS, attack_points, ended_by_victim
from tally import tally


def test_a_worker_killed_at_any_named_point_costs_no_guarantee(arena: Arena) -> None:
    scenes, found = attack_points(arena)

    tally("A1 named points", points=len(scenes), kills=len(scenes), violations=len(found))
    assert found == []
    for scene in scenes:
        ended = ended_by_victim(arena, scene)
        if scene.point.ended_by_victim is not None:
            assert (ended > 0) is scene.point.ended_by_victim, scene.name
        assert ended < len(scene.jobs), f"{scene.name}: the victim ended all of its jobs"
    assert set(POINTS) == {scene.name for scene in scenes}
