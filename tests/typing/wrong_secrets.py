"""Wrong calls with secrets: as wrong as without them. Read by test_typing.py, never executed."""

from __future__ import annotations

from right_secrets import charge
from sqlalchemy.orm import Session

import jobq


def enqueues(s: Session) -> None:
    # wrong: "token" to "enqueue" has incompatible type "int"; expected "str" || parameter "token" of type "Secret
    jobq.enqueue(s, charge, token=1, pins=[])
    # wrong: List item 0 has incompatible type "str"; expected "int" || cannot be assigned to parameter "pins"
    jobq.enqueue(s, charge, token="t", pins=["1"])
    # wrong: Missing positional argument "token" || Argument missing for parameter "token"
    jobq.enqueue(s, charge, pins=[])
