"""How long an attack goes on: a short form in CI, a longer one by `nox -s chaos`, and one for hours."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
LENGTH = "JOBQ_CHAOS"  # ci, chaos or long


def length(*, ci: T, chaos: T, long: T) -> T:
    """The one of the three that JOBQ_CHAOS asks for; without it that of CI."""
    return {"ci": ci, "chaos": chaos, "long": long}[os.environ.get(LENGTH, "ci")]
