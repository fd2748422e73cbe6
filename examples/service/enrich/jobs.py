from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import jobq

from enrich import apollo, crm
from enrich.tools import open_tools

CUSTOMERS = Path(__file__).with_name("customers.txt").read_text().split()  # a customer is a line

app = jobq.App()
app.include(apollo.registry)
app.include(crm.registry)
app.lifespan(open_tools)

# Each customer's CRM has a queue of its own: where a key is refused, only that customer's jobs wait.
for queue in ("apollo", *(f"crm.{customer}" for customer in CUSTOMERS)):
    app.queue(
        queue, fifo=True, timeout=timedelta(minutes=2),
        throttle=jobq.per_minute(150, backoff={"err: 429": timedelta(minutes=5)}),
        pause_on=jobq.http_status({401, 403}, timedelta(hours=1)),
    )  # fmt: skip
