"""Serves pages to browsers of this machine: only GET, on loopback, and to a browser that asks for this host."""

import errno
import signal
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from spark_app.errors import MachineError

HOST: Final = "127.0.0.1"
NAMES: Final = (HOST, "localhost")
"""What a browser may call this machine. A page of another site whose name resolves to loopback calls it otherwise."""
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
}
"""The policy adds to that in each page, which names the hash of its script: what either refuses is refused."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a page, or a sentence about what is wrong."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    kind: str = "text/html; charset=utf-8"


def refusal(status: HTTPStatus, sentence: str) -> Answer:
    """A sentence as text, in which a browser sees no markup."""
    return Answer(sentence.encode("utf-8", "replace") + b"\n", status, "text/plain; charset=utf-8")


Respond = Callable[[str, Mapping[str, str]], Answer]
"""Answers a path and its query."""


class PageServer(ThreadingHTTPServer):
    """A server of pages; `url` is its address."""

    daemon_threads = True

    def __init__(self, port: int, respond: Respond) -> None:
        """Takes the port; 0 is any that is free.

        Raises:
            MachineError: The port is taken, or not allowed.
        """
        try:
            super().__init__((HOST, port), partial(_Handler, respond))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MachineError(f"cannot listen on port {port}: {error.strerror}") from error
            raise MachineError(f"port {port} is in use: choose another with --port, or any with --port 0") from error
        self.url = f"http://{HOST}:{self.server_port}/"
        self._answering, self._done = 0, threading.Condition()

    def start(self, *beside: Callable[[], None]) -> None:
        """Serves pages, and runs other things beside, on threads that do not keep the process alive."""
        for run in (self.serve_forever, *beside):
            _start(run)

    def stop(self, patience: float) -> None:
        """Serves no more, once the requests in hand are answered, or some seconds have passed."""
        self.shutdown()
        with self._done:
            self._done.wait_for(lambda: not self._answering, patience)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a request, and counts it as one in hand."""
        with self._done:
            self._answering += 1
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._done:
                self._answering -= 1
                self._done.notify_all()

    def server_bind(self) -> None:
        """Binds without asking a name server for the name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]


def _start(run: Callable[[], None]) -> None:
    """Starts a thread that gets no signals: whoever waits for them in the main thread must get them all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=run, daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    server_version, sys_version = "spark-app", ""

    def __init__(self, respond: Respond, *arguments: object) -> None:
        self._respond = respond
        super().__init__(*arguments)  # type: ignore[arg-type] # as socketserver passes them

    def parse_request(self) -> bool:
        """Reads the head of a request; refuses other methods and other hosts at once."""
        if not super().parse_request():
            return False
        host, _, port = self.headers.get("Host", "").lower().partition(":")
        if host not in NAMES or port != str(self.server.server_address[1]):  # type: ignore[index]
            self._send(refusal(HTTPStatus.FORBIDDEN, f"ask for http://{HOST}, not for another host"))
        elif self.command != "GET":
            self._send(refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered"))
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answers with a page."""
        address = urlsplit(self.path)
        try:
            answer = self._respond(unquote(address.path), dict(parse_qsl(address.query)))
        except Exception as error:  # noqa: BLE001 - other pages are still served
            answer = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"a bug of spark-app: {type(error).__name__}: {error}")
        self._send(answer)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a request that is none, without its words."""
        del message, explain
        self._send(refusal(HTTPStatus(code), HTTPStatus(code).phrase))

    def log_message(self, *_: object) -> None:
        """Prints nothing: the terminal belongs to the command."""

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = HEADERS | {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        for name, value in (headers | ({"Allow": "GET"} if answer.status == 405 else {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
