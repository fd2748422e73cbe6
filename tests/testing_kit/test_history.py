"""`check_history`: what was lost, duplicated, unexpected, recovered."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobq.testing import History, check_history

keys = st.integers(0, 12)
sets = st.frozensets(keys)
records = st.lists(keys, max_size=30)


@pytest.mark.parametrize(
    ("effects", "given", "word", "found"),
    [
        pytest.param([1], {"committed": [1, 2]}, "lost", {2}, id="committed and without an effect"),
        pytest.param([1], {"committed": [1, 2], "unfinished": [2]}, "lost", set(), id="it still waits"),
        pytest.param([], {"committed": [], "doubtful": [1]}, "lost", set(), id="its commit may not have happened"),
        pytest.param([1, 1, 1], {"committed": [1]}, "duplicated", {1: 2}, id="two too many"),
        pytest.param([1, 1], {"committed": [1], "may_repeat": {1: 1}}, "duplicated", {}, id="it was interrupted once"),
        pytest.param([1] * 3, {"committed": [1], "may_repeat": {1: 1}}, "duplicated", {1: 1}, id="once too often"),
        pytest.param([1, 7, 7], {"committed": [1]}, "unexpected", {7}, id="rolled back, and run"),
        pytest.param([7], {"committed": [], "doubtful": [7]}, "unexpected", set(), id="doubtful is not unexpected"),
        pytest.param([7], {"committed": [], "doubtful": [7, 8]}, "recovered", {7}, id="the commit did happen"),
        pytest.param([7], {"committed": [7], "doubtful": [7]}, "recovered", set(), id="it was known"),
    ],
)
def test_each_word_means_what_its_definition_says(
    effects: list[int], given: dict[str, Any], word: str, found: object
) -> None:
    assert getattr(check_history(effects, **given), word) == found


@given(sets)
def test_each_effect_once_is_a_good_history(done: frozenset[int]) -> None:
    found = check_history(sorted(done, reverse=True), committed=done)

    assert found.ok
    assert found == History(len(done), len(done), frozenset(), {}, frozenset(), frozenset())


@given(sets.filter(bool), st.data())
def test_a_key_taken_out_of_a_good_record_is_lost_and_a_second_one_is_too_many(
    done: frozenset[int], data: st.DataObject
) -> None:
    one = data.draw(st.sampled_from(sorted(done)))

    without = check_history(done - {one}, committed=done)
    twice = check_history([*done, one], committed=done)

    assert (without.ok, without.lost) == (False, {one})
    assert (twice.ok, dict(twice.duplicated)) == (False, {one: 1})


@given(records, sets, sets, sets)
def test_every_key_is_of_one_sort_at_most_and_every_effect_is_accounted_for(
    effects: list[int], committed: frozenset[int], doubtful: frozenset[int], unfinished: frozenset[int]
) -> None:
    found = check_history(effects, committed=committed, doubtful=doubtful, unfinished=unfinished)

    assert not found.lost & set(effects)
    assert not found.unexpected & found.recovered
    assert found.unexpected | found.recovered | (committed & set(effects)) == set(effects)
    assert found.lost <= committed - unfinished
    assert sum(found.duplicated.values()) == len(effects) - len(set(effects))
    assert found.ok == (not found.lost and not found.duplicated and not found.unexpected)


@given(records, sets, st.randoms())
def test_the_order_of_the_record_and_of_the_keys_does_not_matter(
    effects: list[int], committed: frozenset[int], order: Random
) -> None:
    shuffled = order.sample(effects, len(effects))

    assert check_history(shuffled, committed=iter(committed)) == check_history(effects, committed=committed)


@given(records, sets, sets)
def test_to_allow_as_many_as_there_are_leaves_none_too_many(
    effects: list[int], committed: frozenset[int], doubtful: frozenset[int]
) -> None:
    strict = check_history(effects, committed=committed, doubtful=doubtful)

    lenient = check_history(effects, committed=committed, doubtful=doubtful, may_repeat=strict.duplicated)

    assert dataclasses.replace(strict, duplicated={}) == dataclasses.replace(lenient, duplicated={})
    assert lenient.duplicated == {}


def test_it_says_what_it_found_with_some_of_the_keys() -> None:
    found = check_history([1, 1, 90, 8], committed=[1, *range(10, 20)], doubtful=[8, 9])

    assert str(found) == (
        "11 expected, 4 effects: 10 lost (10, 11, 12, 13, 14, ...), 1 duplicated (1), 1 unexpected (90),"
        " 1 recovered (8)"
    )
    assert str(check_history(["a"], committed=["a"])) == (
        "1 expected, 1 effects: 0 lost, 0 duplicated, 0 unexpected, 0 recovered"
    )


def test_what_it_found_cannot_be_changed() -> None:
    found = check_history([1, 1], committed=[1])

    with pytest.raises(dataclasses.FrozenInstanceError):
        found.effects = 0  # type: ignore[misc]
    with pytest.raises(TypeError):
        found.duplicated[1] = 0  # type: ignore[index]
