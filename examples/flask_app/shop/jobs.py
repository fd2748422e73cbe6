"""What `jobq run shop.jobs:app` runs: the handlers, each job inside of the application's context, as a request is."""

from __future__ import annotations

import jobq

from shop import create_app, handlers

flask_app = create_app()

app = jobq.App()
app.include(handlers.registry)
app.around(flask_app.app_context)
