"""The names of `jobq.testing`."""

from __future__ import annotations

import inspect

import pytest

from jobq import pytest_plugin, testing


@pytest.mark.parametrize("name", testing.__all__)
def test_a_name_is_there_and_explained(name: str) -> None:
    assert inspect.getdoc(getattr(testing, name))


@pytest.mark.parametrize("name", [name for name in testing.__all__ if name.endswith("_async")])
def test_an_async_twin_takes_what_the_sync_one_takes(name: str) -> None:
    twin, other = (inspect.signature(getattr(testing, each)) for each in (name, name.removesuffix("_async")))

    assert [(p.name, p.kind, p.default) for p in twin.parameters.values()] == [
        (p.name, p.kind, p.default) for p in other.parameters.values()
    ]


def test_every_fixture_is_named_for_the_library_and_explained() -> None:
    fixtures = [name for name in vars(pytest_plugin) if name.startswith("jobq_")]

    assert {"jobq_session", "jobq_async_session", "jobq_engine", "jobq_database_url", "jobq_server_url"} <= set(
        fixtures
    )
    assert all(inspect.getdoc(getattr(pytest_plugin, name)) for name in fixtures)
