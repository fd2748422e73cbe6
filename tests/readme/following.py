"""Somebody who follows the documents: a project folder, and the snippets executed in their order."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy as sa
from documents import Block
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

import jobq
from jobq.tables import jobs

PATIENCE_SECONDS = 30
OWN_CODE = Path(__file__).with_name("readers_own.py")
PACKAGE = "shop"


@dataclass
class Reader:
    """Has written the snippets down as the documents say: those that name a file into it, the others in one module."""

    folder: Path
    database_url: str
    module: types.ModuleType = field(default_factory=lambda: types.ModuleType(f"{PACKAGE}_reader"))

    @property
    def names(self) -> dict[str, Any]:
        return vars(self.module)

    def open(self, session: Session) -> None:
        sys.modules[self.module.__name__] = self.module
        exec(compile(OWN_CODE.read_text(), OWN_CODE.name, "exec"), self.names)
        self.names.update(session=session, engine=session.get_bind())
        self.names.update(async_engine=create_async_engine(self.database_url, poolclass=sa.NullPool))
        self.names["Base"].metadata.create_all(session.get_bind())

    def close(self) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in (PACKAGE, self.module.__name__)]:
            del sys.modules[name]

    async def follow(self, *given: Block) -> None:
        for block in given:
            if block.path is None:
                await self.execute(block.text, block.id)
            else:
                self.names.update(public(self.write(block)))

    async def work_until_nothing_is_due(self, worker: jobq.Worker) -> None:
        """A worker in this process, until whatever was due has ended (what is scheduled for later stays)."""
        due = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.run_at <= sa.func.now())
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                await group.start(worker.run)
                while self._scalar(due):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
                worker.stop()

    def _scalar(self, statement: sa.Select[Any]) -> Any:
        with self.names["engine"].connect() as connection:
            return connection.scalar(statement)

    def write(self, block: Block) -> types.ModuleType:
        """The block in the file that it names, imported."""
        assert block.path is not None
        path = self.folder / block.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(block.text)
        importlib.invalidate_caches()
        return importlib.import_module(block.path.removesuffix(".py").replace("/", "."))

    async def execute(self, text: str, name: str = "<snippet>") -> Any:
        """Statements, `await` among them; the value of the last, if it is an expression."""
        tree = ast.parse(text, name)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value, lineno=1, col_offset=0)
        self.names["_"] = None
        code = compile(ast.fix_missing_locations(tree), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if inspect.iscoroutine(running := eval(code, self.names)):
            await running
        return self.names["_"]


def public(module: types.ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}
