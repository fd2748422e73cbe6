from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from sqlalchemy.util import greenlet_spawn

from jobq.callsite import callsite

HERE = "tests/unit/test_callsite.py"


def this_line() -> str:
    return f"{HERE}:{sys._getframe(1).f_lineno}"


def function_in(file: str | Path, module: str) -> Callable[[], str | None]:
    """A function that asks for its callsite, as if it stood in `file` and was imported as `module`."""
    names: dict[str, Any] = {"__name__": module, "callsite": callsite}
    exec(compile("def ask():\n    return callsite()", str(file), "exec"), names)
    ask: Callable[[], str | None] = names["ask"]
    return ask


def test_the_line_of_the_call_is_recorded_relative_to_the_project() -> None:
    assert callsite() == this_line()
    assert (lambda: callsite())() == this_line()
    assert functools.partial(callsite)() == this_line()


@pytest.mark.parametrize("module", ["jobq", "jobq.producer", "sqlalchemy.orm.session", "anyio._core", "sqlmodel.main"])
def test_frames_of_jobq_and_of_session_glue_are_passed_over(tmp_path: Path, module: str) -> None:
    ask = function_in(tmp_path / "glue.py", module)

    assert ask() == this_line()


@pytest.mark.parametrize("module", ["jobqueue", "myjobq.jobq", "tests.jobq", "__main__"])
def test_a_module_of_a_similar_name_is_not_glue(tmp_path: Path, module: str) -> None:
    assert function_in(tmp_path / "app.py", module)() == "app.py:2"


def test_frames_of_the_standard_library_are_passed_over() -> None:
    ask = function_in(Path(sysconfig.get_path("stdlib"), "functools.py"), "functools")

    assert ask() == this_line()
    assert function_in("<frozen importlib._bootstrap>", "importlib")() == this_line()


@pytest.mark.parametrize(
    ("mark", "expected"), [("pyproject.toml", "shop/orders.py:2"), (".git", "shop/orders.py:2"), (None, "orders.py:2")]
)
def test_a_file_is_relative_to_the_nearest_project(tmp_path: Path, mark: str | None, expected: str) -> None:
    (tmp_path / "shop").mkdir()
    if mark is not None:
        (tmp_path / mark).touch()

    assert function_in(tmp_path / "shop" / "orders.py", "shop.orders")() == expected


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_an_application_installed_among_the_packages_is_not_passed_over(tmp_path: Path, folder: str) -> None:
    (tmp_path / "pyproject.toml").touch()

    ask = function_in(tmp_path / "lib" / folder / "shop" / "orders.py", "shop.orders")

    assert ask() == "shop/orders.py:2"


def test_typed_in_code_is_recorded_as_such() -> None:
    assert function_in("<stdin>", "__main__")() == "<stdin>:2"


def test_a_file_name_that_is_no_text_does_not_reach_the_database(tmp_path: Path) -> None:
    where = function_in(tmp_path / "caf\udce9.py", "__main__")()

    assert where == "caf?.py:2"


def test_a_bare_executor_has_no_callsite() -> None:
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(callsite).result(10) is None
        assert executor.submit(lambda: callsite()).result(10) == this_line()


@pytest.mark.anyio
async def test_a_thread_of_anyio_has_no_callsite() -> None:
    assert await anyio.to_thread.run_sync(callsite) is None


@pytest.mark.anyio
async def test_under_run_sync_the_caller_is_one_greenlet_up() -> None:
    async def of_the_session() -> str | None:
        return await greenlet_spawn(callsite)

    assert await greenlet_spawn(callsite) == this_line()
    assert await greenlet_spawn(lambda: callsite()) == this_line()
    assert await of_the_session() == f"{HERE}:{of_the_session.__code__.co_firstlineno + 1}"


def returning_a_coroutine() -> Coroutine[Any, Any, str | None]:
    """The form of jobq.enqueue_async: plain, so that it runs at the call and not at the await."""
    where = ask_as_jobq()

    async def insert() -> str | None:
        return where

    return insert()


ask_as_jobq = function_in("producer.py", "jobq.producer")


@pytest.mark.anyio
async def test_the_call_is_recorded_however_its_coroutine_is_driven() -> None:
    line = returning_a_coroutine.__code__.co_firstlineno + 2
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(returning_a_coroutine())

    assert await returning_a_coroutine() == f"{HERE}:{line}"
    assert await asyncio.wait_for(returning_a_coroutine(), 10) == f"{HERE}:{line}"
    assert task.result() == f"{HERE}:{line}"


def test_the_environment_switches_it_off_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_CALLSITE", "0")
    assert callsite() is None

    monkeypatch.setenv("JOBQ_CALLSITE", "1")
    assert callsite() == this_line()


def test_greenlet_is_not_imported_for_it() -> None:
    code = "import sys; from jobq.callsite import callsite; callsite(); assert 'greenlet' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
