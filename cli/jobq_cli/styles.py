"""The colours of a terminal's output."""

from __future__ import annotations

from jobq.model import State

STATE_STYLES = {
    State.PENDING: "cyan",
    State.RUNNING: "blue",
    State.DONE: "green",
    State.DEAD: "red",
    State.CANCELLED: "yellow",
}
