"""What people install: the wheel, built from the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(built)


def test_f57_the_wheel_has_the_three_packages_and_nothing_else_on_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"jobq", "jobq_cli", "jobq_migrations"}
    assert len(tops) == 4


def test_the_wheel_says_that_it_is_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {"jobq/py.typed", "jobq_cli/py.typed", "jobq_migrations/py.typed"} <= set(archive.namelist())


def test_the_wheel_tells_pytest_of_its_fixtures(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        said = archive.read(name).decode()

    assert "[pytest11]\njobq = jobq.pytest_plugin" in said


def test_f57_the_migrations_are_found_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import jobq.schema; print(jobq.schema.__file__); print(jobq.schema.migration_sql())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout

    assert printed.startswith(str(tmp_path / "site"))
    assert "CREATE TABLE jobq.jobs" in printed
