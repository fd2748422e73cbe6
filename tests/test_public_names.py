"""The public names: one list, written three times (for readers, for type checkers, for the interpreter)."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jobq
from jobq import errors

EXPECTED = [
    *("App", "Registry", "Handler", "Kind", "Args", "kind"),
    *("enqueue", "enqueue_async", "enqueue_many", "enqueue_many_async", "Enqueued"),
    *("enqueue_select", "enqueue_select_async", "pk"),
    *("Outcome", "Ok", "Fail", "Skip", "Permanent", "Snooze", "Exponential", "ByError"),
    *("current", "Context", "Transaction", "Worker", "WorkerStats", "ErrorEvent", "migrate", "metadata"),
    *("get", "get_async", "jobs", "jobs_async", "retry", "retry_async", "cancel", "cancel_async"),
    *("Secret",),
    *("every", "cron", "when", "Schedule", "schedules", "schedules_async", "run_schedule", "run_schedule_async"),
    *("clean", "clean_async", "recent", "recent_async", "OutcomeStats"),
    *("why", "why_async", "Why", "Cause", "Reason"),
    *("health", "health_async", "Health", "Check", "JobEnd", "JobEnds"),
    *("stats", "stats_async", "workers", "workers_async", "Job", "State", "Failure", "JobqError"),
]
VALUES = {"metadata", "Secret"}  # no class or function, so without a docstring of its own


def type_checking_imports() -> dict[str, str]:
    """The names that a type checker sees, and the module of each."""
    tree = ast.parse(Path(jobq.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "jobq"  # that is a whole module, as jobq.tables
        for alias in node.names
    }


def test_the_list_the_table_and_the_type_checkers_imports_agree() -> None:
    assert sorted(jobq.__all__) == jobq.__all__
    assert set(jobq.__all__) == set(jobq._HOME)
    assert type_checking_imports() == jobq._HOME


@pytest.mark.parametrize("name", jobq.__all__)
def test_a_public_name_is_there_and_explained(name: str) -> None:
    value: Any = getattr(jobq, name)

    if name not in VALUES:
        assert value.__name__ == name
        assert _own_docstring(value), f"{name} has no docstring"


def _own_docstring(value: Any) -> str | None:
    """Not one that a base class left, nor the signature that a dataclass makes up."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return None if text and text.startswith(f"{value.__name__}(") else text


@pytest.mark.parametrize("name", EXPECTED)
def test_a_name_that_users_were_told_of_is_public(name: str) -> None:
    assert name in jobq.__all__


def test_every_error_is_public_and_in_the_tree_that_the_module_draws() -> None:
    kinds = {name for name, value in vars(errors).items() if inspect.isclass(value)}

    assert kinds <= set(jobq.__all__)
    for name in kinds:
        assert issubclass(getattr(errors, name), errors.JobqError)
        assert name.endswith("Error")
        assert f"{name}" in (errors.__doc__ or "")


def test_the_tables_are_reached_through_the_package() -> None:
    assert jobq.tables.jobs.metadata is jobq.metadata
    assert "tables" in dir(jobq)


def test_dir_shows_what_was_not_loaded_yet() -> None:
    program = "import jobq; print(set(jobq.__all__) <= set(dir(jobq)), 'Worker' in vars(jobq))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.split() == ["True", "False"]


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, Any] = {}

    exec("from jobq import *", names)

    assert set(jobq.__all__) <= set(names)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'jobq' has no attribute 'enqeue'"):
        _ = jobq.enqeue  # type: ignore[attr-defined]


def test_a_submodule_is_not_named_like_a_public_function() -> None:
    folder = Path(jobq.__file__).parent
    submodules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert submodules & set(jobq.__all__) == set()
