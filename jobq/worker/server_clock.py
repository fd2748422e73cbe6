"""The server's clock, as far as somebody who has a monotonic one can judge it. A decision, no I/O."""

from __future__ import annotations

from datetime import datetime, timedelta

TOLERANCE = timedelta(seconds=0.5)
FASTER = 0.01  # and so much of the time between: after an outage looks lie hours apart, and clocks drift


class ServerClock:
    """Notices that it was set forward: then leases seem to have run out whose workers are well."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None  # what it said, and a moment of ours right before

    def was_set_forward(self, at: datetime, *, asked: float, answered: float) -> timedelta | None:
        """By how much at least, since the look before this one; None: not, or it cannot be told.

        `at`: what it says now. `asked`, `answered`: seconds of a monotonic clock around that.
        """
        last, self._last = self._last, (at, asked)
        if last is None:
            return None
        passed = timedelta(seconds=answered - last[1])
        ahead = at - last[0] - passed
        return ahead if ahead > TOLERANCE + FASTER * passed else None
