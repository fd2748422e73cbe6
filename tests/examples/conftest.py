"""Copies of the examples; what they start ends with the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from readme_steps import Example, ExampleOf


@pytest.fixture
def example_of(tmp_path: Path, empty_database_url: str) -> Iterator[ExampleOf]:
    """Copies an example by its name; its commands find an empty database in DATABASE_URL."""
    with ExitStack() as stack:

        def copy(name: str) -> Example:
            example = Example(name, tmp_path, empty_database_url)
            stack.callback(example.close)
            return example

        yield copy


@pytest.fixture
def example_alone(own_directory: Path) -> Iterator[ExampleOf]:
    """Copies an example by its name; its commands find no DATABASE_URL, as on a fresh clone.

    The PostgreSQL that they start is stopped at the end.
    """
    with ExitStack() as stack:

        def copy(name: str) -> Example:
            example = Example(name, own_directory, None)
            stack.callback(example.run, "jobq db stop")
            stack.callback(example.close)
            return example

        yield copy
