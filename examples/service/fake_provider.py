"""Stands in for the paid providers: `python fake_provider.py`. What it was asked is at GET /asked.

`curl -X PUT localhost:8090/answers/crm/acme -d 401`: from then on that is the answer below /crm/acme, until 200.
"""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider:
    """Knows every company but those of .invalid, and says what it was told to."""

    def __init__(self) -> None:
        self.answers: dict[str, int] = {}
        self.asked: list[str] = []
        self.credits = 1000

    def answer(self, method: str, path: str, body: bytes = b"") -> tuple[int, object]:
        if path == "/asked":
            return 200, self.asked
        if path.startswith("/answers/"):
            self.answers[path.removeprefix("/answers")] = int(body)
            return 200, {}
        self.asked.append(f"{method} {path}")
        told = next((status for below, status in self.answers.items() if path.startswith(below)), 200)
        if told != 200:
            return told, {}
        if path == "/apollo/credits":
            return 200, {"left": self.credits}
        return (404, {}) if path.endswith(".invalid") else (200, {"people": 10 * len(path)})


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider = Provider()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, answer = self.provider.answer(self.command, self.path, body)
        text = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_GET  # noqa: N815


if __name__ == "__main__":
    port = int(os.environ.get("PROVIDER_PORT", "8090"))
    print(f"serving at http://localhost:{port}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Request).serve_forever()
