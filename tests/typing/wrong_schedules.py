"""Wrong schedules. As in wrong.py."""

from __future__ import annotations

from datetime import timedelta

from right_schedules import app, report

import jobq

HOUR = timedelta(hours=1)

# wrong: Argument 1 to "every" has incompatible type "int" || "Literal\[24\]" is not assignable to "timedelta"
jobq.every(24)

# wrong: Argument "catch_up" to "cron" has incompatible type || "Literal\['most'\]" is not assignable to
jobq.cron("@daily", catch_up="most")

# wrong: Argument 1 to "cron" has incompatible type "timedelta" || "timedelta" is not assignable to "str"
jobq.cron(HOUR)

# wrong: Argument 1 to "when" has incompatible type "str" || is not assignable to type "Predicate"
jobq.when("minute % 15")

# wrong: Argument "day" to "schedule" .* has incompatible type "str" || "Literal\['x'\]" is not assignable to "int"
app.schedule(jobq.every(HOUR), report, day="x")

# wrong: Unexpected keyword argument "month" || No parameter named "month"
app.schedule(jobq.every(HOUR), report, month=3)

# wrong: Argument 1 to "schedule" of "Periodic" has incompatible type "str" || is not assignable to "Schedule"
app.schedule("@daily", report)


# wrong: incompatible type "Callable\[\[\], None\]"; expected "Handler || "FunctionType" is not assignable
@app.every(HOUR)
def below() -> None: ...
