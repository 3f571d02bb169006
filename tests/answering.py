"""A real HTTP server on a loopback port that answers what a test says, for every program that is asked over HTTP."""

import contextlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Question = tuple[dict[str, str], Any]


@dataclass(frozen=True)
class Refusal:
    """An answer that is none."""

    status: int
    content: Any = None


@dataclass
class Answering:
    """What is answered at each path: JSON, bytes, a refusal, or a function of the parameters and the body.

    A path that ends in `/` may stand for all below it; its function is given the path.

    Attributes:
        asked: The parameters and the body of each question, by path.
    """

    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, list[Question]] = field(default_factory=dict)


@contextlib.contextmanager
def answering(answers: dict[str, Any]) -> Iterator[Answering]:
    """A server that listens on a free port until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.found = Answering(f"http://127.0.0.1:{server.server_port}", answers)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.found
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    found: Answering


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answers a question without a body."""
        self._answer(None)

    def do_POST(self) -> None:
        """Answers a question with one."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(json.loads(body) if self.headers["Content-Type"] == "application/json" else body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Says nothing."""

    def _answer(self, body: Any) -> None:
        path, _, query = self.path.partition("?")
        parameters = dict(urllib.parse.parse_qsl(query))
        self.server.found.asked.setdefault(path, []).append((parameters, body))
        answers = self.server.found.answers
        folder = path.rsplit("/", 1)[0] + "/"
        if path in answers or folder not in answers:
            answer = answers.get(path, Refusal(404))
            content = answer(parameters, body) if callable(answer) else answer
        else:
            content = answers[folder](path) if callable(answers[folder]) else answers[folder]
        status, content = (content.status, content.content) if isinstance(content, Refusal) else (200, content)
        sent = content if isinstance(content, bytes) else json.dumps(content).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
