"""The table of a worker's options in the README, and its example of a pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from documents import blocks, rows, section, spans

from jobq_cli.settings.entries import Entry, entries
from jobq_cli.settings.merge import merge
from jobq_cli.settings.project import Project
from jobq_cli.settings.show import written

HEADING = "Options of a worker"


def row_of(entry: Entry) -> tuple[str, str, str]:
    """How the table tells of an option."""
    default = written(entry.name, entry.default) or entry.spec.unset or "-"
    return f"`{entry.key}`", default, entry.spec.about.replace("|", "\\|")


def test_the_table_tells_of_every_option_in_the_words_of_the_help() -> None:
    told = [row.cells for row in rows("README.md", HEADING)]

    assert told == [row_of(entry) for entry in entries().values()]


def test_the_example_of_a_project_is_taken_as_it_stands() -> None:
    shown = [block for block in blocks("README.md") if block.language == "toml" and block.heading == HEADING]
    assert shown

    for block in shown:
        table = tomllib.loads(block.text)["tool"]["jobq"]
        settings = merge(Project(Path("pyproject.toml"), table), {}, {})
        assert settings.faults == []
        assert {entry.key for entry in entries().values() if settings.found[entry.name].source != "default"} == set(
            table
        )


def test_a_variable_in_the_text_is_one_that_is_read() -> None:
    known = {entry.variable for entry in entries().values()}
    named = {found for span in spans(section("README.md", HEADING)) for found in re.findall(r"JOBQ_[A-Z_]+", span)}

    assert named
    assert named <= known
