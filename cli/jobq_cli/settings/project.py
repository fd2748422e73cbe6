"""The table [tool.jobq] of the nearest pyproject.toml that has one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobq_cli.failures import Failed

FILE = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Project:
    """What a project says; `path` of the file."""

    path: Path
    table: Mapping[str, Any]

    @property
    def where(self) -> str:
        """For messages: seen from the working directory."""
        return f"{os.path.relpath(self.path)} [tool.jobq]"


class ProjectFault(Failed):
    """A pyproject.toml that cannot be read."""


def find_project(start: Path) -> Project | None:
    """From a folder upwards; files without [tool.jobq] are passed over. Raises: ProjectFault."""
    for folder in (start, *start.parents):
        path = folder / FILE
        if os.path.isfile(path) and (table := _table(path)) is not None:
            return Project(path, table)
    return None


def _table(path: Path) -> Mapping[str, Any] | None:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except OSError as error:
        raise ProjectFault(f"cannot read {os.path.relpath(path)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ProjectFault(f"{os.path.relpath(path)} is not UTF-8, as TOML has to be") from error
    except tomllib.TOMLDecodeError as error:
        raise ProjectFault(f"{os.path.relpath(path)} is not TOML: {' '.join(str(error).split())}") from error
    table = tool.get("jobq") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ProjectFault(f"{os.path.relpath(path)}: tool.jobq is no table: write [tool.jobq] on a line of its own")
    return table
