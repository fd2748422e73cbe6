"""Lanes of a worker whose threads are taken: what it does not ask for stays where it is."""

from __future__ import annotations

import random
from datetime import timedelta

from worker_values import NOON, claimed

from jobq.model import Position
from jobq.store.claiming import Claim
from jobq.worker.lanes import START, Cursor, Lanes

MINUTE = timedelta(minutes=1)


def serving(*queues: str) -> Lanes:
    lanes = Lanes(random.Random(1))
    lanes.serve(dict.fromkeys(queues, 1))
    return lanes


def cursor_of(lanes: Lanes, *, is_narrow: bool) -> Cursor:
    (ask,) = [ask for ask in lanes.ask(1, is_narrow=is_narrow) if ask.priority == 1]
    return Cursor(ask.run_at, ask.id)


def test_a_claim_of_some_kinds_moves_no_cursor_of_all_kinds() -> None:
    lanes = serving("q")
    asked = lanes.ask(10, is_narrow=True)

    lanes.absorb(asked, Claim(NOON, (claimed(7, run_at=NOON, queue="q", priority=1),)), room=10)

    assert cursor_of(lanes, is_narrow=True) == Cursor(NOON, 7)
    assert cursor_of(lanes, is_narrow=False) == START


def test_a_notification_sets_both_back_and_a_sweep_begins_both_anew() -> None:
    lanes = serving("q")
    for is_narrow in (True, False):
        lanes.absorb(
            lanes.ask(10, is_narrow=is_narrow),
            Claim(NOON, (claimed(7, run_at=NOON, queue="q", priority=1),)),
            room=10,
        )

    lanes.set_back(Position("q", 1, NOON - MINUTE))
    assert all(cursor_of(lanes, is_narrow=is_narrow).run_at < NOON - MINUTE for is_narrow in (True, False))
    lanes.forget()
    assert all(cursor_of(lanes, is_narrow=is_narrow) == START for is_narrow in (True, False))


def test_a_queue_is_asked_for_no_more_than_its_part_and_without_one_not_at_all() -> None:
    lanes = serving("full", "some", "free")
    parts = {"full": 0, "some": 2, "free": 10}

    asked = lanes.ask(10, part_of=lambda queue, room: min(room, parts[queue]))

    assert {(ask.queue, ask.limit) for ask in asked} == {("some", 2), ("free", 10)}


def test_a_queue_that_was_busy_and_is_not_asked_for_leaves_nothing_to_be_claimed() -> None:
    lanes = serving("full", "free")
    jobs = tuple(claimed(id_, run_at=NOON, queue="full", priority=1) for id_ in (1, 2))
    lanes.absorb(lanes.ask(2, part_of=lambda _, room: room), Claim(NOON, jobs), room=2)

    asked = lanes.ask(2, part_of=lambda queue, room: 0 if queue == "full" else room)
    lanes.absorb(asked, Claim(NOON, ()), room=2)

    assert not lanes.has_more


def test_more_urgent_jobs_are_asked_for_in_the_lanes_above_alone() -> None:
    lanes = serving("full", "some")
    parts = {"full": 0, "some": 2}

    asked = lanes.ask_above(2, 10, part_of=lambda queue, room: min(room, parts[queue]), is_narrow=False)

    assert [(ask.queue, ask.priority, ask.limit) for ask in asked] == [("some", 0, 2), ("some", 1, 2)]


def test_a_claim_of_urgent_jobs_of_some_kinds_moves_no_cursor_of_all_kinds() -> None:
    lanes = serving("q")
    lanes.absorb(lanes.ask(10), Claim(NOON, (claimed(3, run_at=NOON, queue="q", priority=1),)), room=10)

    asked = lanes.ask_above(2, 10, part_of=lambda _, room: room, is_narrow=True)
    late = NOON + MINUTE
    lanes.absorb_above(asked, Claim(late, (claimed(7, run_at=late, queue="q", priority=1),)), room=10)

    assert cursor_of(lanes, is_narrow=True) == Cursor(late, 7)
    assert cursor_of(lanes, is_narrow=False).run_at <= NOON
