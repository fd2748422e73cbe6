"""Rules for what only the process of a worker is told, beside those of jobq.worker.rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobq.errors import OptionError
from jobq.worker.rules import Fault, shown
from jobq_cli.load import hint


@dataclass(frozen=True, slots=True)
class Place:
    """Where an App is: `module:attribute`."""

    allowed: str = "module:attribute, such as shop.jobs:app"

    def fault(self, name: str, value: object) -> Fault | None:
        problem = hint(value) if isinstance(value, str) else f"must be {self.allowed}"
        return None if problem is None else OptionError(f"{name}: {problem}")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: type[StrEnum]

    @property
    def allowed(self) -> str:
        return f"one of {', '.join(self.words)}"

    def fault(self, name: str, value: object) -> Fault | None:
        return None if value in list(self.words) else OptionError(f"{name} must be {self.allowed}, got {shown(value)}")
