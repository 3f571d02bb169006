"""A receiver of alerts in Jupyter's container, so that no program of this machine listens to others."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.e2e.stack import docker, run_in
from tests.polling import poll_until

ALERTS: Final = "/dev/shm/alerts.jsonl"
RECEIVER: Final = f"""
import http.server

class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("{ALERTS}", "ab") as file:
            file.write(body.strip() + b"\\n")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("", 9999), Hook)
open("{ALERTS}", "wb").close()
server.serve_forever()
"""


@contextmanager
def receiver() -> Iterator[None]:
    """Receives alerts for a while."""
    run_in("jupyter", "rm", "-f", ALERTS)
    docker("exec", "--detach", "jupyter", "python", "-c", RECEIVER)
    poll_until(lambda: run_in("jupyter", "test", "-f", ALERTS, check=False).returncode == 0, "a receiver of alerts")
    try:
        yield
    finally:
        run_in("jupyter", "pkill", "--full", ALERTS)


def alerts() -> dict[str, dict[str, str]]:
    """The annotations of each alert that was received as firing, by its name."""
    lines = docker("exec", "jupyter", "cat", ALERTS).splitlines()
    firing = [alert for line in lines for alert in json.loads(line)["alerts"] if alert["status"] == "firing"]
    return {alert["labels"]["alertname"]: alert["annotations"] for alert in firing}
