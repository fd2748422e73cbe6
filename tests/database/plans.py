"""The plans that the server really used, as auto_explain tells them: of the statements that a function has sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

BIG = frozenset({"jobs", "finished_jobs"})
TELLING = {
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One statement as it was executed."""

    query: str
    top: dict[str, Any]

    @property
    def pages(self) -> int:
        """How often a page was looked at, wherever it was."""
        return int(self.top["Shared Hit Blocks"]) + int(self.top["Shared Read Blocks"])

    @property
    def scans(self) -> set[str]:
        """How the big tables were read, as `alias by index`; `alias by Seq Scan` is without one."""
        return {_scan(node) for node in self._nodes() if node.get("Relation Name") in BIG and "Scan" in _type(node)}

    @property
    def sorted(self) -> int:
        """How many rows the largest sort took in at once."""
        taken = [child["Actual Rows"] for node in self._nodes() if "Sort" in _type(node) for child in node["Plans"]]
        return round(max(taken, default=0))

    def _nodes(self) -> Iterator[dict[str, Any]]:
        """Those that were reached."""
        return (node for node in _below(self.top) if node["Actual Loops"])


@contextmanager
def explained(connection: sa.Connection) -> Iterator[list[Plan]]:
    """The plans of what is executed meanwhile, on a superuser's connection and in its transaction."""
    plans: list[Plan] = []
    connection.exec_driver_sql("LOAD 'auto_explain'")
    for name, value in TELLING.items():
        connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")

    def heard(diagnostic: Any) -> None:
        head, _, told = diagnostic.message_primary.partition("plan:\n")
        if head.startswith("duration"):
            plan = json.loads(told)
            plans.append(Plan(plan["Query Text"], plan["Plan"]))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(heard)
    yield plans
    connection.exec_driver_sql("RESET auto_explain.log_min_duration")  # a plan is told with the next statement
    driver.remove_notice_handler(heard)


def _below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _below(child)


def _type(node: dict[str, Any]) -> str:
    return str(node["Node Type"])


def _scan(node: dict[str, Any]) -> str:
    """Aliases are numbered where a table is read several times."""
    indexes = [below["Index Name"] for below in _below(node) if "Index Name" in below]
    return f"{re.sub('_[0-9]+$', '', node['Alias'])} by {indexes[0] if indexes else _type(node)}"
