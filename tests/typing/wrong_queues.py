"""Wrong calls about queues. As in wrong.py."""

from __future__ import annotations

from datetime import timedelta

from right_queues import app
from sqlalchemy.orm import Session

import jobq

HOUR = timedelta(hours=1)


def of_a_declaration() -> None:
    # wrong: "fifo" .* incompatible type "str"; expected "bool" || "fifo"
    app.queue("q", fifo="yes")
    # wrong: "concurrency" .* incompatible type "str"; expected "int . None" || "concurrency"
    app.queue("q", concurrency="4")
    # wrong: "threads" .* incompatible type "str"; expected "int . None" || Literal.*parameter "threads"
    app.queue("q", threads="4")
    # wrong: Unexpected keyword argument "thread" || No parameter named "thread"
    app.queue("q", thread=4)
    # wrong: "throttle" .* incompatible type "int" || "throttle"
    app.queue("q", fifo=True, throttle=150)
    # wrong: "pause_on" .* incompatible type "set.int." || "pause_on"
    app.queue("q", pause_on={401, 403})
    # wrong: "timeout" .* incompatible type "int" || "timeout"
    app.queue("q", timeout=5)


def of_a_pace_and_a_pause(session: Session) -> None:
    # wrong: incompatible type "str"; expected "float" || cannot be assigned to parameter "n"
    jobq.per_minute("150")
    # wrong: incompatible type "int"; expected "timedelta" || cannot be assigned to parameter "duration"
    jobq.http_status({401}, 3600)
    # wrong: "PauseQueue" has incompatible type "int"; expected "timedelta" || assigned to parameter "duration"
    raise jobq.PauseQueue(5)


def by_hand(session: Session) -> None:
    # wrong: incompatible type "str"; expected "timedelta . None" || cannot be assigned to parameter "duration"
    jobq.pause(session, "q", "1h")
    # wrong: Unexpected keyword argument "until" || No parameter named "until"
    jobq.pause(session, "q", until=None)
