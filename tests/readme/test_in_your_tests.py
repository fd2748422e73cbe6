"""The tests that the README writes, run by pytest in a project whose shop they are about."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import blocks
from running import environment

pytestmark = pytest.mark.slow

TESTS = [block for block in blocks("README.md") if block.is_a_readers_test]
SHOP = Path(__file__).with_name("tested_shop")
PYTEST = [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider", "-rA"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The shop, with the tests as the README has them."""
    shutil.copytree(SHOP, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "tests").mkdir()
    for block in TESTS:
        (tmp_path / str(block.path)).write_text(block.text)
    return tmp_path


def run_the_tests(project: Path, server_url: str) -> subprocess.CompletedProcess[str]:
    variables = {**environment(server_url), "JOBQ_TEST_DATABASE_URL": server_url}
    variables = {name: value for name, value in variables.items() if not name.startswith("PYTEST_")}
    return subprocess.run(PYTEST, cwd=project, env=variables, capture_output=True, text=True, timeout=120)


def test_the_tests_of_the_readme_pass(project: Path, server_url: str) -> None:
    done = run_the_tests(project, server_url)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{TESTS[1].text.count('def test_')} passed" in done.stdout


def test_they_fail_where_the_shop_enqueues_nothing(project: Path, server_url: str) -> None:
    orders = project / "shop/orders.py"
    orders.write_text("".join(line for line in orders.read_text().splitlines(True) if "enqueue" not in line))

    done = run_the_tests(project, server_url)

    assert done.returncode == 1
    assert "AssertionError" in done.stdout
    assert "receipt.send" in done.stdout


def test_their_shop_is_the_one_of_the_readme() -> None:
    """The handler that the tests are about is the one that the README shows, with what it does."""
    (shown,) = [block for block in blocks("README.md") if block.path == "shop/jobs.py"]
    signature = "async def send_receipt(order_id: int) -> None:"

    assert [block.path for block in TESTS] == ["tests/conftest.py", "tests/test_orders.py"]
    assert signature in shown.text
    assert signature in (SHOP / "shop/jobs.py").read_text()
