"""All that can happen next."""

from __future__ import annotations

from collections.abc import Iterator

from model import claiming, ending, hands, leasing, transactions
from model.rules import Rules
from model.state import Step, World

OF_A_WORKER = (
    claiming.claim, claiming.late_claim, claiming.answer, claiming.reconcile,
    ending.handle, ending.write, ending.work_left, ending.give_back, transactions.move, transactions.commit,
    leasing.expire, leasing.thaw, leasing.beat, leasing.notice, leasing.join, leasing.rescue,
    hands.fault, hands.start, hands.stop,
)  # fmt: skip
OF_A_JOB = (hands.operate, hands.wait)


def steps(world: World, rules: Rules) -> Iterator[Step]:
    """Every step that is possible now."""
    for of_worker in OF_A_WORKER if rules.rescue_in_statements else (*OF_A_WORKER, leasing.hasty_rescue):
        for w in range(len(world.workers)):
            yield from of_worker(world, rules, w)
    for of_job in OF_A_JOB:
        for j in range(len(world.jobs)):
            yield from of_job(world, rules, j)
    yield from hands.crash(world, rules)
