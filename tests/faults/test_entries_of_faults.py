"""The table of faults is whole: each entry is there, each test that it names exists, each number has an entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from entries import ARGUMENTS, CLAIMS, ENDS_OF_PROCESSES, KEYS, LEASES, RETRIES, Entry
from more_entries import ATTACKS, CONNECTIONS, OPERATING, SCHEMA, SESSIONS, TIME
from named_tests import names

DESIGN = Path(__file__).parents[2] / "DESIGN.md"
PARTS = [
    *[ARGUMENTS, KEYS, RETRIES, CLAIMS, LEASES, ENDS_OF_PROCESSES],
    *[TIME, CONNECTIONS, SESSIONS, SCHEMA, OPERATING, ATTACKS],
]
ENTRIES: dict[str, Entry] = {number: entry for part in PARTS for number, entry in part.items()}
NUMBERS = [*[f"f{n:02}" for n in range(1, 75)], *[f"a{n}" for n in range(1, 11)]]
NUMBERED = re.compile(r"test_((?:[af]\d+_)+)")


def test_each_fault_of_the_list_has_one_entry() -> None:
    assert sorted(ENTRIES) == sorted(NUMBERS)
    assert sum(map(len, PARTS)) == len(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_entry_has_tests_that_there_are_or_a_line_that_says_why_not(number: str) -> None:
    entry = ENTRIES[number]

    assert entry.shown or entry.reason
    assert set(entry.shown.split()) <= names()
    assert entry.reason in DESIGN.read_text()


@pytest.mark.parametrize("number", NUMBERS)
def test_an_entry_with_tests_names_one_that_carries_its_number(number: str) -> None:
    entry = ENTRIES[number]

    assert entry.reason or [name for name in entry.shown.split() if number in numbers_of(name)]


def test_each_number_in_the_name_of_a_test_has_an_entry() -> None:
    carried = {name: numbers_of(name) for name in names()}

    assert {name: found - set(NUMBERS) for name, found in carried.items() if found - set(NUMBERS)} == {}
    assert len([name for name, found in carried.items() if found]) > 300


def numbers_of(name: str) -> set[str]:
    """The numbers at the beginning of a test's name: test_f01_f02_..."""
    match = NUMBERED.match(name)
    return set(match[1].strip("_").split("_")) if match else set()
