"""A shop. `flask --app shop run` finds `create_app` here."""

from __future__ import annotations

from typing import Any

from flask import Flask

from shop.database import database_url, db


def create_app(**settings: Any) -> Flask:
    from shop.orders import orders

    app = Flask(__name__)
    app.config.update(settings)
    if "SQLALCHEMY_DATABASE_URI" not in settings:
        app.config["SQLALCHEMY_DATABASE_URI"] = database_url()
    db.init_app(app)
    app.register_blueprint(orders)
    return app
