"""The layers: a module imports only from groups to its left. Read from the source, also inside of functions."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"jobq": ROOT, "jobq_cli": ROOT / "cli", "jobq_migrations": ROOT / "alembic"}
# A package stands for all of its modules, which may import each other.
LAYERS = [
    "jobq.errors jobq.model",
    "jobq.masking",
    "jobq.codec jobq.describe",
    "jobq.outcomes jobq.reports",
    "jobq.context",
    "jobq.backoff jobq.callsite jobq.embedded jobq.events jobq.fairness"
    " jobq.faults jobq.histogram jobq.session_settings jobq.keys jobq.outgoing jobq.pausing jobq.pooler jobq.readings"
    " jobq.report jobq.retention jobq.spans jobq.tables jobq.urls",
    "jobq.bind jobq.checks jobq.diagnosis jobq.notify jobq.reading jobq.refusals jobq.source"
    " jobq.tally jobq.throttle jobq.verdict",
    "jobq.answers jobq.options jobq.queue_settings jobq.schedule",
    "jobq.handlers",
    "jobq.periodic",
    "jobq.registry",
    "jobq.statements",
    "jobq.labels jobq.store jobq.which",
    "jobq.preparing",
    "jobq.asking jobq.idle",
    "jobq_migrations",
    "jobq.admin jobq.bulk jobq.checking jobq.cleaner jobq.database jobq.explain jobq.grants jobq.lookup jobq.overview"
    " jobq.producer jobq.queueing jobq.scheduling jobq.schema jobq.selection jobq.showing",
    "jobq.executors jobq.inspection jobq.waiting",
    "jobq.worker",
    "jobq.child",
    "jobq.testing",
    "jobq.pytest_plugin",
    "jobq.end_counts",
    "jobq.metrics jobq.sentry jobq.tracing",
    "jobq",
    "jobq_cli",
    "jobq.__main__",
]
FOR_TYPES_ONLY = {("jobq.worker.stats", "jobq.worker.assembly")}  # a circle that only a type checker sees


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its name."""
    return {_name(path, root): path for package, root in PACKAGES.items() for path in (root / package).rglob("*.py")}


@cache
def imports() -> dict[str, frozenset[str]]:
    """What each module of ours imports of ours, wherever in it the import stands."""
    return {name: frozenset(_imported(ast.parse(path.read_text()))) for name, path in modules().items()}


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (_module_of(name) for name in names if name.partition(".")[0] in PACKAGES)


def _module_of(name: str) -> str:
    """`jobq.store.ending.finish` is of the module `jobq.store.ending`."""
    while name not in modules():
        name = name.rpartition(".")[0]
    return name


def place(module: str) -> tuple[int, str]:
    """In which group a module stands, and as what: itself, or the package that it is in."""
    names = {name: n for n, group in enumerate(LAYERS) for name in group.split()}
    while module not in names:
        assert "." in module, "a module without a place"
        module = module.rpartition(".")[0]
    return names[module], module


def test_every_module_has_a_place_and_every_place_a_module() -> None:
    whole = {name for name in modules() if name.count(".") <= 1}  # modules and packages of the first level
    listed = [name for group in LAYERS for name in group.split()]

    assert len(listed) == len(set(listed))
    assert set(listed) - set(modules()) == set()
    assert {name for name in whole if name.startswith("jobq.")} - set(listed) == set()


def test_a_module_imports_only_from_groups_to_its_left() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if place(other)[1] != place(module)[1] and place(other)[0] >= place(module)[0]
    ]

    assert wrong == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        module: {other for other in others - {module} if (module, other) not in FOR_TYPES_ONLY}
        for module, others in imports().items()
    }

    assert set(TopologicalSorter(graph).static_order()) == set(modules())  # raises CycleError


def test_only_the_main_module_of_the_library_imports_the_command_line() -> None:
    importers = {module for module, others in imports().items() if any(o.startswith("jobq_cli") for o in others)}

    assert {module for module in importers if not module.startswith("jobq_cli")} == {"jobq.__main__"}


def test_revisions_import_nothing_of_ours_and_their_environment_the_metadata_alone() -> None:
    revisions = [name for name in modules() if name.startswith("jobq_migrations.versions.")]

    assert revisions
    assert all(imports()[name] == frozenset() for name in revisions)
    others = {name for module in modules() if module.startswith("jobq_migrations") for name in imports()[module]}
    assert {name for name in others if not name.startswith("jobq_migrations")} == {
        "jobq.tables",
        "jobq.urls",
        "jobq.errors",
    }


@pytest.mark.parametrize("package", ["jobq.statements", "jobq.store"])
def test_statements_and_store_are_written_without_asyncio(package: str) -> None:
    texts = [path.read_text() for name, path in modules().items() if name.startswith(f"{package}.")]

    assert texts
    assert not any("asyncio" in text or "async def" in text for text in texts)


def test_the_folders_of_the_migrations_and_the_command_line_are_no_packages() -> None:
    assert not (ROOT / "alembic" / "__init__.py").exists()
    assert not (ROOT / "cli" / "__init__.py").exists()


def loaded_by(code: str) -> set[str]:
    """What a fresh interpreter has loaded after running this."""
    program = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout))


HEAVY = {"sqlalchemy.ext.asyncio", "typer", "alembic", "greenlet", "anyio", "asyncio", "psycopg", "jobq.worker"}


def test_f53_importing_jobq_loads_nothing_heavy() -> None:
    assert loaded_by("import jobq") & HEAVY == set()


HELP = """
import contextlib, io
from jobq_cli.app import run
with contextlib.redirect_stdout(io.StringIO()):
    assert [run(each) for each in (["--help"], ["run", "--help"], ["health", "--help"])] == [0, 0, 0]
"""


def test_f53_the_extras_are_loaded_only_where_they_are_used() -> None:
    extras = {"prometheus_client", "opentelemetry", "sentry_sdk", "distributed", "uvloop"}

    assert loaded_by("import jobq\njobq.Worker, jobq.health, jobq.enqueue") & extras == set()
    assert loaded_by(HELP) & extras == set()
    assert "prometheus_client" in loaded_by("import jobq.metrics")


def test_f53_what_a_web_application_uses_loads_neither_worker_nor_command_line_nor_migrations() -> None:
    loaded = loaded_by(
        "import jobq\n"
        "app = jobq.App()\n"
        "@app.handler('k')\n"
        "async def k(n: int) -> None: ...\n"
        "k.options(priority=0).args(n=1)\n"
        "jobq.enqueue, jobq.enqueue_async, jobq.retry, jobq.stats, jobq.tables, jobq.metadata"
    )

    assert loaded & {"sqlalchemy.ext.asyncio", "typer", "alembic", "psycopg", "jobq.worker", "jobq_cli"} == set()


def test_f53_cronsim_is_loaded_by_the_first_cron_schedule_and_not_before() -> None:
    others = "import jobq, datetime\njobq.App().every(datetime.timedelta(hours=1)), jobq.when(bool)"

    assert "cronsim" not in loaded_by(others)
    assert "cronsim" in loaded_by("import jobq\njobq.cron('@daily')")


def test_the_command_line_loads_its_commands_when_they_are_asked_for() -> None:
    loaded = loaded_by("import jobq_cli")

    assert loaded & {"sqlalchemy", "alembic", "psycopg", "jobq.worker", "anyio"} == set()
